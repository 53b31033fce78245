-- Asks running turns to stop. Index: primary key.
UPDATE turns SET cancel_ms = coalesce(cancel_ms, ?2)
WHERE job_id IN (SELECT unhex(value) FROM json_each(?1)) AND state = 2
