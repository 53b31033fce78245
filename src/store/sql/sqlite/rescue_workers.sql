-- Lapsed workers. Index: none (workers are few).
SELECT worker_no, heartbeat_ms FROM workers WHERE heartbeat_ms + lease_ms <= ?1 ORDER BY worker_no
