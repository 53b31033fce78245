-- Which of the jobs $1 live, and whether their turns run. Index: primary key.
SELECT job_id, state FROM turns WHERE job_id = ANY ($1)
