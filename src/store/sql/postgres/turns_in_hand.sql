-- Running turns among the jobs $1, locked in the order of their ids. Guard: the caller compares the fence.
-- Index: primary keys; `+ 0` keeps the one of running turns out of it.
SELECT t.job_id, t.fence, t.lane_id, l.scope_id, t.worker_no, t.permit_no, t.in_flight, t.cancel_ms, t.seq,
       t.priority, t.rank_ms, t.executions, t.deferrals, t.repairs, t.lost, t.waiting_since_ms, t.parked_ms, t.claimed_ms,
       t.paused_ms, t.told, t.once
FROM turns AS t JOIN lanes AS l ON l.lane_id = t.lane_id
WHERE t.job_id = ANY ($1) AND t.state + 0 = 2
ORDER BY t.job_id
FOR UPDATE OF t
