-- A worker, behind its claims under way. Index: unique worker_id.
SELECT worker_no FROM workers WHERE worker_id = $1 FOR UPDATE
