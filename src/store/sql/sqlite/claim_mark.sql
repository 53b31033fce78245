-- Puts turns (?1: their ids) into the hand of worker ?2; the fences are ?3 and on. Guard: state. Index: primary key.
UPDATE turns
SET state = 2, due_ms = NULL, worker_no = ?2, fence = ?3 + e.n, permit_no = ?3 + e.n, claimed_ms = ?4, in_flight = 1,
    parked_ms = NULL, wait_until_ms = NULL, cancel_ms = NULL
FROM (SELECT unhex(value) AS job_id, key AS n FROM json_each(?1)) AS e
WHERE turns.job_id = e.job_id AND turns.state = 0
