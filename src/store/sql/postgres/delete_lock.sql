-- Which of the jobs $1 have ended, locked in the order of their ids. Index: primary key.
SELECT job_id FROM jobs WHERE job_id = ANY ($1) AND state IS NOT NULL ORDER BY job_id FOR UPDATE
