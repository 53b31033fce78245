-- Workers whose lease stands. Index: workers_there.
SELECT worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency FROM workers INDEXED BY workers_there
WHERE ended_ms IS NULL AND lapsed_ms IS NULL AND heartbeat_ms + lease_ms > ?1
ORDER BY worker_no
