-- The first turns of accepted jobs. Guard: primary key.
INSERT INTO turns (job_id, lane_id, state, seq, priority, rank_ms, due_ms, deadline_ms, told, once)
SELECT job_id, lane_id, state, seq, priority, rank_ms, due_ms, deadline_ms, told, once
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::bigint[], $10::bigint[])
    AS e (job_id, lane_id, state, priority, rank_ms, due_ms, deadline_ms, seq, told, once)
