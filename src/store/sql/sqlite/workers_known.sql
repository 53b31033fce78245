-- Workers that are, and those that were within the last day, with the last that was heard of each.
-- Index: none (workers are few).
SELECT worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency, max(heartbeat_ms, coalesce(ended_ms, 0)),
       ended_ms
FROM workers ORDER BY worker_no
