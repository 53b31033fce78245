-- The ids from $1 to $2 whose digits end in $3, at most $4. Index: primary key.
SELECT j.job_id FROM jobs AS j
WHERE j.job_id >= $1 AND j.job_id <= $2 AND right(replace(j.job_id::text, '-', ''), length($3)) = $3
ORDER BY j.job_id LIMIT $4
