-- Puts turns back to the queue. Guard: the caller compared the fences; the rows are locked. Index: primary key.
UPDATE turns
SET state = e.state, rank_ms = e.rank_ms, due_ms = e.due_ms, seq = e.seq, executions = e.executions,
    deferrals = e.deferrals, repairs = e.repairs, lost = e.lost, waiting_since_ms = e.waiting_since_ms,
    worker_no = NULL, fence = NULL, claimed_ms = NULL, permit_no = NULL, in_flight = 0, parked_ms = NULL,
    wait_until_ms = NULL, cancel_ms = NULL
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[])
    AS e (job_id, state, rank_ms, due_ms, seq, executions, deferrals, repairs, lost, waiting_since_ms)
WHERE turns.job_id = e.job_id
