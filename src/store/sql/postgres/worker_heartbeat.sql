-- Renews a lease. Guard: a rescued worker's heartbeat is 0 and stays so. Index: unique worker_id.
UPDATE workers SET heartbeat_ms = greatest(heartbeat_ms, $2) WHERE worker_id = $1 AND heartbeat_ms > 0
