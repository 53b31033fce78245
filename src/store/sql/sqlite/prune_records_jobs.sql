-- Ended jobs whose records have outlived their retention. Index: jobs_kept.
SELECT job_id FROM jobs INDEXED BY jobs_kept
WHERE pruned = 0 AND finished_ms IS NOT NULL AND finished_ms < ?1 ORDER BY finished_ms LIMIT ?2
