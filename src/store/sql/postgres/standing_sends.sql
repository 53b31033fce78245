-- The latest replaced send of the execution $2 of the job $1, with the number of them, and what was read of the reset
-- that it was refused with. Index: primary keys.
SELECT (SELECT count(*) FROM sends AS d WHERE d.job_id = $1 AND d.fence = $2) AS replaced, x.wait_ms, x.wait_source, e.raw,
       x.outcome
FROM sends AS x LEFT JOIN reset_evidence AS e ON e.job_id = x.job_id AND e.fence = x.fence AND e.n = x.n
WHERE x.job_id = $1 AND x.fence = $2
ORDER BY x.n DESC LIMIT 1
