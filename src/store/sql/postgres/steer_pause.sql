-- Pauses turns, or lets them go on (nulls). Guard: the rows are locked. Index: primary key.
UPDATE turns SET paused_ms = $2, paused_by = $3, pause_reason = $4 WHERE job_id = ANY ($1)
