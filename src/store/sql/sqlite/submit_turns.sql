-- The first turns of accepted jobs. Guard: primary key.
INSERT INTO turns (job_id, lane_id, state, seq, priority, rank_ms, due_ms, deadline_ms, told, once)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
