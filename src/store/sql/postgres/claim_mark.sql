-- Puts turns into the hand of worker $3. Guard: state; the rows are locked. Index: primary key.
UPDATE turns
SET state = 2, due_ms = NULL, worker_no = $3, fence = e.fence, permit_no = e.fence, claimed_ms = $4, in_flight = 1,
    parked_ms = NULL, wait_until_ms = NULL, cancel_ms = NULL
FROM unnest($1::uuid[], $2::bigint[]) AS e (job_id, fence)
WHERE turns.job_id = e.job_id AND turns.state + 0 = 0
