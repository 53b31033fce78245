-- Puts turns back to the queue: [[job, state, rank_ms, due_ms, seq, executions, deferrals, repairs, lost,
-- waiting_since_ms], …]. Guard: the caller compared the fences in this transaction. Index: primary key.
UPDATE turns
SET state = e.value ->> 1, rank_ms = e.value ->> 2, due_ms = e.value ->> 3, seq = e.value ->> 4,
    executions = e.value ->> 5, deferrals = e.value ->> 6, repairs = e.value ->> 7, lost = e.value ->> 8,
    waiting_since_ms = e.value ->> 9,
    worker_no = NULL, fence = NULL, claimed_ms = NULL, permit_no = NULL, in_flight = 0, parked_ms = NULL,
    wait_until_ms = NULL, cancel_ms = NULL
FROM json_each(?1) AS e
WHERE turns.job_id = unhex(e.value ->> 0)
