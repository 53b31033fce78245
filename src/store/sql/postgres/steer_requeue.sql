-- Ends the backoff of turns at $2. Guard: state; the rows are locked. Index: primary key; `+ 0` keeps the one of due turns
-- out of it.
UPDATE turns SET state = 0, due_ms = NULL, rank_ms = least(rank_ms, $2 - 60000 * priority)
WHERE job_id = ANY ($1) AND state + 0 = 1
