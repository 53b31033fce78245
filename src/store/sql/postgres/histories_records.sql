-- The answers of the jobs $1, in order. Index: primary key.
SELECT e.place, r.seq, r.cut, r.response
FROM unnest($1::uuid[]) WITH ORDINALITY AS e (job_id, place) JOIN turn_records AS r ON r.job_id = e.job_id
WHERE r.outcome IN ('completed', 'truncated') AND r.response IS NOT NULL
ORDER BY e.place, r.fence
