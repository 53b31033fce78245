-- As `jobs`, where only failed and cancelled ones are asked for, by state or by what they ended with.
-- Index: jobs_failed, walked backwards.
SELECT j.job_id, j.state, t.state, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, t.seq, t.due_ms, t.executions,
       t.deferrals, t.wait_until_ms, s.scope_id, s.account_id, j.ended_no, t.paused_ms, t.paused_by, t.pause_reason,
       q.paused_ms, q.paused_by, q.pause_reason, j.schedule_id
FROM jobs AS j INDEXED BY jobs_failed
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN turns AS t ON t.job_id = j.job_id
LEFT JOIN queues AS q ON q.queue = l.queue
WHERE j.state IN ('failed', 'cancelled') AND j.job_id < ?1
  AND (?9 = '[]' OR j.state IN (SELECT value FROM json_each(?9)))
  AND (?14 = '[]' OR j.error_cause IN (SELECT value FROM json_each(?14)))
  AND (?15 = '[]' OR j.error_class IN (SELECT value FROM json_each(?15)))
  AND (?16 = '[]' OR j.error_code IN (SELECT value FROM json_each(?16)))
  AND (?17 = '[]' OR j.error_http IN (SELECT value FROM json_each(?17)))
  AND (?2 = '[]' OR l.queue IN (SELECT value FROM json_each(?2)))
  AND (?3 = '[]' OR l.tenant IN (SELECT value FROM json_each(?3)))
  AND (?4 = '[]' OR s.provider IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR s.account IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.model IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR j.created_ms >= ?7) AND (?8 IS NULL OR j.created_ms < ?8)
  AND (?10 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?10) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = j.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
ORDER BY j.job_id DESC
LIMIT ?11
