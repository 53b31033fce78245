-- The jobs that are retries of the jobs $1. Index: jobs_retry_of.
SELECT j.retry_of, j.job_id
FROM unnest($1::uuid[]) WITH ORDINALITY AS e (job_id, place) JOIN jobs AS j ON j.retry_of = e.job_id
ORDER BY e.place
