-- The answers of the jobs ?1, in order. Index: unique (job_id, fence).
SELECT e.key, r.seq, r.cut, r.response
FROM json_each(?1) AS e
CROSS JOIN turn_records AS r ON r.job_id = unhex(e.value)
WHERE r.outcome IN ('completed', 'truncated') AND r.response IS NOT NULL
ORDER BY e.key, r.fence
