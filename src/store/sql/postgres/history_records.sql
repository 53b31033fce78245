-- The answers of a job in order. Index: primary key.
SELECT seq, cut, response FROM turn_records
WHERE job_id = $1 AND outcome IN ('completed', 'truncated') AND response IS NOT NULL
ORDER BY fence
