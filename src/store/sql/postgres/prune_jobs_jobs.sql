-- Ended jobs that have outlived their retention, locked. Index: jobs_kept, for each value of pruned.
SELECT job_id FROM jobs
WHERE pruned IN (0, 1) AND finished_ms IS NOT NULL AND finished_ms < $1
LIMIT $2
FOR UPDATE SKIP LOCKED
