-- A turn waits in hand, without a permit. Guard: fence. Index: primary key.
UPDATE turns SET in_flight = 0, parked_ms = coalesce(parked_ms, $3), wait_until_ms = $4
WHERE job_id = $1 AND state + 0 = 2 AND fence = $2
