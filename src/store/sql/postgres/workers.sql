-- Workers whose lease stands. Index: none (workers are few).
SELECT worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency FROM workers
WHERE ended_ms IS NULL AND lapsed_ms IS NULL AND heartbeat_ms + lease_ms > $1
ORDER BY worker_no
