-- Deletes workers that ended before $1. Index: workers_ended.
DELETE FROM workers WHERE worker_no = ANY (ARRAY(
    SELECT worker_no FROM workers WHERE ended_ms IS NOT NULL AND ended_ms < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
))
