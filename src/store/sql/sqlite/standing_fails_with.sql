-- The last record of the job ?1 that tells of its calls, as `expire` has it, and whether it has an error: what the job fails
-- with if its deadline passes while it waits. Index: unique (job_id, fence), walked backwards.
SELECT ended_ms, outcome, class, cause, code, http_status, error IS NOT NULL AS failed FROM turn_records
WHERE job_id = ?1 AND (code IS NULL OR code NOT IN ('worker_lost', 'worker_drained'))
ORDER BY fence DESC LIMIT 1
