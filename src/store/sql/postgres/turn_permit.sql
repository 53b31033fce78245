-- Notes a turn's permit. Guard: fence. Index: primary key.
UPDATE turns SET permit_no = $3, in_flight = 1, parked_ms = NULL, wait_until_ms = NULL
WHERE job_id = $1 AND state + 0 = 2 AND fence = $2
