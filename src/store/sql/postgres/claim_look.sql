-- Whether a worker's lease stands, and whether the time of some turn has come. Index: unique worker_id, turns_later.
SELECT EXISTS (SELECT 1 FROM workers WHERE worker_id = $1 AND heartbeat_ms > 0 AND heartbeat_ms + lease_ms > $2),
       EXISTS (SELECT 1 FROM turns WHERE state = 1 AND paused_ms IS NULL AND due_ms <= $2)
