-- Jobs that already have one of the keys. Index: jobs_key.
SELECT e.place, j.job_id, j.digest
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS e (tenant, key, place)
JOIN jobs AS j ON j.key_tenant = e.tenant AND j.key = e.key AND j.key IS NOT NULL
