-- Ends a lease at once: its turns are to be rescued. Index: unique worker_id.
UPDATE workers SET heartbeat_ms = 0 WHERE worker_id = $1
