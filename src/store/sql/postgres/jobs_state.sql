-- Which of the jobs have ended, and how. Index: primary key.
SELECT job_id, state FROM jobs WHERE job_id = ANY ($1) AND state IS NOT NULL
