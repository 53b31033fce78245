-- The labels of jobs. Index: primary key.
SELECT e.place, b.key, b.value
FROM unnest($1::uuid[]) WITH ORDINALITY AS e (job_id, place) JOIN labels AS b ON b.job_id = e.job_id
ORDER BY e.place, b.key
