-- Lapsed workers whose turns were all taken. Guard: the rows are locked. Index: primary key, turns_running.
DELETE FROM workers
WHERE worker_no = ANY ($1) AND heartbeat_ms = 0
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.state = 2 AND turns.worker_no = workers.worker_no)
