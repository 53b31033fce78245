-- A worker whose lease stands. Index: unique worker_id.
SELECT worker_no FROM workers WHERE worker_id = ?1 AND heartbeat_ms > 0 AND heartbeat_ms + lease_ms > ?2
