-- Makes a worker known. Guard: unique worker_id.
INSERT INTO workers (worker_id, queues, started_ms, heartbeat_ms, lease_ms, concurrency) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (worker_id) DO UPDATE SET heartbeat_ms = excluded.heartbeat_ms, lease_ms = excluded.lease_ms,
    queues = excluded.queues, concurrency = excluded.concurrency
WHERE workers.lapsed_ms IS NULL AND workers.ended_ms IS NULL
