-- Ends a lease. Guard: the worker holds no turn; its row is locked. Index: unique worker_id, turns_running.
DELETE FROM workers
WHERE worker_id = $1
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.state = 2 AND turns.worker_no = workers.worker_no)
