-- Ends a lease; the worker was seen now. Guard: it holds no turn; its row is locked. Index: unique worker_id,
-- turns_running.
UPDATE workers SET ended_ms = $2, heartbeat_ms = greatest(heartbeat_ms, $2)
WHERE worker_id = $1 AND lapsed_ms IS NULL AND ended_ms IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.state = 2 AND turns.worker_no = workers.worker_no)
