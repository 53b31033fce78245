-- Waiting turns whose job's deadline has passed, with the error of their last record that tells
-- of their calls (a worker that went says nothing of those). Index: turns_deadline, unique
-- (job_id, fence).
SELECT t.job_id, t.lane_id, t.state, t.paused_ms,
       (SELECT r.error FROM turn_records AS r
        WHERE r.job_id = t.job_id AND (r.code IS NULL OR r.code NOT IN ('worker_lost', 'worker_drained'))
        ORDER BY r.fence DESC LIMIT 1)
FROM turns AS t INDEXED BY turns_deadline
WHERE t.state < 2 AND t.deadline_ms IS NOT NULL AND t.deadline_ms <= ?1
ORDER BY t.deadline_ms
LIMIT ?2
