-- At most ?2 turns in the hands of the workers ?1. Index: turns_running.
SELECT 0, t.job_id, t.fence, t.lane_id, l.scope_id, t.worker_no, t.permit_no, t.in_flight, t.cancel_ms, t.seq,
       t.priority, t.rank_ms, t.executions, t.deferrals, t.repairs, t.lost, t.waiting_since_ms, t.parked_ms, t.claimed_ms,
       t.paused_ms, t.told, t.once
FROM json_each(?1) AS e
CROSS JOIN turns AS t INDEXED BY turns_running ON t.worker_no = e.value
CROSS JOIN lanes AS l ON l.lane_id = t.lane_id
WHERE t.state = 2
LIMIT ?2
