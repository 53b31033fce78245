-- The jobs that are retries of the jobs ?1. Index: jobs_retry_of.
SELECT e.key, j.job_id
FROM json_each(?1) AS e
CROSS JOIN jobs AS j INDEXED BY jobs_retry_of ON j.retry_of = unhex(e.value) AND j.retry_of IS NOT NULL
