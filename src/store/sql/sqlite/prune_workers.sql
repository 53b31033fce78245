-- Deletes workers that ended before ?1. Index: workers_ended.
DELETE FROM workers WHERE worker_no IN (
    SELECT worker_no FROM workers INDEXED BY workers_ended WHERE ended_ms IS NOT NULL AND ended_ms < ?1 LIMIT ?2
)
