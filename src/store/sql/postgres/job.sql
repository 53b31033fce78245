-- One job. Index: primary keys.
SELECT j.job_id, j.state, t.state, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, t.seq, t.due_ms, t.executions,
       t.deferrals, t.wait_until_ms, s.scope_id, s.account_id, j.ended_no, t.paused_ms, t.paused_by, t.pause_reason,
       q.paused_ms, q.paused_by, q.pause_reason, j.schedule_id
FROM jobs AS j
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN turns AS t ON t.job_id = j.job_id
LEFT JOIN queues AS q ON q.queue = l.queue
WHERE j.job_id = $1
