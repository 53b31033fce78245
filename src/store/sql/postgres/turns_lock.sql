-- Live turns of the jobs $1, locked in the order of their ids. Index: primary key.
SELECT job_id, state, lane_id, paused_ms, priority, executions FROM turns
WHERE job_id = ANY ($1) ORDER BY job_id FOR UPDATE
