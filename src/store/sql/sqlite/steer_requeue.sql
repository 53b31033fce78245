-- Ends the backoff of turns at ?2. Guard: state. Index: primary key.
UPDATE turns SET state = 0, due_ms = NULL, rank_ms = min(rank_ms, ?2 - 60000 * priority)
WHERE job_id IN (SELECT unhex(value) FROM json_each(?1)) AND state = 1
