-- Ended jobs whose records have outlived their retention, locked. Index: jobs_kept.
SELECT job_id FROM jobs
WHERE pruned = 0 AND finished_ms IS NOT NULL AND finished_ms < $1
ORDER BY finished_ms LIMIT $2
FOR UPDATE SKIP LOCKED
