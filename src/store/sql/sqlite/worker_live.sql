-- A worker whose lease stands. Index: unique worker_id.
SELECT worker_no FROM workers
WHERE worker_id = ?1 AND lapsed_ms IS NULL AND ended_ms IS NULL AND heartbeat_ms + lease_ms > ?2
