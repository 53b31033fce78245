-- Ends a lease at once: its turns are to be rescued. Index: unique worker_id.
UPDATE workers SET lapsed_ms = coalesce(lapsed_ms, $2) WHERE worker_id = $1 AND ended_ms IS NULL
