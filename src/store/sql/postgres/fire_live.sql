-- Does a job of the schedule live? Index: jobs_scheduled_live.
SELECT EXISTS (SELECT 1 FROM jobs WHERE schedule_id = $1 AND schedule_id IS NOT NULL AND state IS NULL)
