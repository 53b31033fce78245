-- Workers that are, and those that were within the last day (whose lease lapsed, or who went). Index: none (workers are few).
SELECT worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency, coalesce(ended_ms, lapsed_ms) AS gone_ms
FROM workers ORDER BY worker_no
