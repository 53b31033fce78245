-- The labels of jobs. Index: primary key.
SELECT e.key, b.key, b.value
FROM json_each(?1) AS e
CROSS JOIN labels AS b ON b.job_id = unhex(e.value)
ORDER BY e.key, b.key
