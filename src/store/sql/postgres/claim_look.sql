-- Whether a worker's lease stands, and whether the time of some turn has come. Index: unique worker_id, turns_later.
SELECT EXISTS (SELECT 1 FROM workers WHERE worker_id = $1 AND coalesce(lapsed_ms, ended_ms) IS NULL
                                       AND heartbeat_ms + lease_ms > $2),
       EXISTS (SELECT 1 FROM turns WHERE state = 1 AND paused_ms IS NULL AND due_ms <= $2)
