-- Waiting turns whose job's deadline has passed, locked, with the error of their last record
-- that tells of their calls (a worker that went says nothing of those); those that somebody is at
-- are left. Index: turns_deadline, primary key of turn_records.
WITH late AS MATERIALIZED (
    SELECT t.job_id, t.lane_id, t.state, t.deadline_ms, t.paused_ms FROM turns AS t
    WHERE t.state < 2 AND t.deadline_ms IS NOT NULL AND t.deadline_ms <= $1
    ORDER BY t.deadline_ms LIMIT $2
    FOR UPDATE SKIP LOCKED
)
SELECT t.job_id, t.lane_id, t.state, t.paused_ms,
       (SELECT r.error FROM turn_records AS r
        WHERE r.job_id = t.job_id AND (r.code IS NULL OR r.code NOT IN ('worker_lost', 'worker_drained'))
        ORDER BY r.fence DESC LIMIT 1)
FROM late AS t
ORDER BY t.deadline_ms, t.job_id
