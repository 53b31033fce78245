-- Jobs that already have one of the keys [[tenant, key], …]. Index: jobs_key.
SELECT e.key, j.job_id, j.digest
FROM json_each(?1) AS e
CROSS JOIN jobs AS j INDEXED BY jobs_key
    ON j.key_tenant = e.value ->> 0 AND j.key = e.value ->> 1 AND j.key IS NOT NULL
