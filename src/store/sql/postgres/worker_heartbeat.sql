-- Renews a lease. Guard: a lapsed worker may not come back. Index: unique worker_id.
UPDATE workers SET heartbeat_ms = greatest(heartbeat_ms, $2)
WHERE worker_id = $1 AND lapsed_ms IS NULL AND ended_ms IS NULL
