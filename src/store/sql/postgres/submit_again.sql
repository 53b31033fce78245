-- Which of the jobs are there, and as what. Index: primary key.
SELECT job_id, digest FROM jobs WHERE job_id = ANY ($1)
