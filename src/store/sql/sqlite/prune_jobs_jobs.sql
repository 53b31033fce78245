-- Ended jobs that have outlived their retention. Index: jobs_kept, once for each value of pruned.
SELECT job_id FROM jobs INDEXED BY jobs_kept
WHERE pruned IN (0, 1) AND finished_ms IS NOT NULL AND finished_ms < ?1 LIMIT ?2
