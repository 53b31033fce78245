-- Running turns among the jobs ?1. Guard: the caller compares the fence. Index: primary keys.
SELECT e.key, t.job_id, t.fence, t.lane_id, l.scope_id, t.worker_no, t.permit_no, t.in_flight, t.cancel_ms, t.seq,
       t.priority, t.rank_ms, t.executions, t.deferrals, t.repairs, t.lost, t.waiting_since_ms, t.parked_ms, t.claimed_ms,
       t.paused_ms, t.told, t.once
FROM json_each(?1) AS e
CROSS JOIN turns AS t ON t.job_id = unhex(e.value)
CROSS JOIN lanes AS l ON l.lane_id = t.lane_id
WHERE t.state = 2
