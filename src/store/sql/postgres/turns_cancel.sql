-- Asks running turns to stop. Guard: the rows are locked. Index: primary key.
UPDATE turns SET cancel_ms = coalesce(cancel_ms, $2) WHERE job_id = ANY ($1) AND state + 0 = 2
