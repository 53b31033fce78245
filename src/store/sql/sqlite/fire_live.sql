-- Does a job of the schedule live? Index: jobs_scheduled_live.
SELECT 1 FROM jobs INDEXED BY jobs_scheduled_live WHERE schedule_id = ?1 AND state IS NULL LIMIT 1
