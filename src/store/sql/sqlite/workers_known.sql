-- Workers that are, and those that were within the last day, with the last that was heard of each.
-- Index: none (workers are few).
SELECT worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency, heartbeat_ms AS seen_ms,
       coalesce(ended_ms, lapsed_ms) AS gone_ms
FROM workers ORDER BY worker_no
