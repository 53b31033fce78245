-- Makes due turns claimable; answers how many of each lane. Guard: state; turns that somebody is at are left for the next
-- time. Index: turns_later, primary key.
WITH due AS MATERIALIZED (
    SELECT job_id FROM turns WHERE state = 1 AND paused_ms IS NULL AND due_ms <= $1
    ORDER BY due_ms, job_id LIMIT $2
    FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE turns SET state = 0, due_ms = NULL FROM due WHERE turns.job_id = due.job_id RETURNING turns.lane_id
)
SELECT lane_id, count(*) FROM moved GROUP BY lane_id
