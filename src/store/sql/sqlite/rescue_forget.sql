-- Lapsed workers whose turns were all taken. Index: turns_running.
DELETE FROM workers
WHERE worker_no IN (SELECT value FROM json_each(?1)) AND heartbeat_ms = 0
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.state = 2 AND turns.worker_no = workers.worker_no)
