-- As `jobs`, where only live ones are asked for, by state or by what they wait for: walks the turns, however long the
-- history, and looks at the jobs of those that fit. Index: primary keys.
SELECT j.job_id, j.state, t.state, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, t.seq, t.due_ms, t.executions,
       t.deferrals, t.wait_until_ms, s.scope_id, s.account_id, j.ended_no, t.paused_ms, t.paused_by, t.pause_reason,
       q.paused_ms, q.paused_by, q.pause_reason, j.schedule_id
FROM turns AS t
CROSS JOIN lanes AS l ON l.lane_id = t.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN queues AS q ON q.queue = l.queue
CROSS JOIN jobs AS j ON j.job_id = t.job_id
WHERE t.job_id < ?1
  AND (?2 = '[]' OR l.queue IN (SELECT value FROM json_each(?2)))
  AND (?3 = '[]' OR l.tenant IN (SELECT value FROM json_each(?3)))
  AND (?4 = '[]' OR s.provider IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR s.account IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.model IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR j.created_ms >= ?7) AND (?8 IS NULL OR j.created_ms < ?8)
  AND (?9 = '[]' OR CASE t.state WHEN 2 THEN 'running' ELSE 'queued' END IN (SELECT value FROM json_each(?9))
       OR (t.state < 2 AND 'waiting' IN (SELECT value FROM json_each(?9)))
       OR (t.state < 2 AND 'deferred' IN (SELECT value FROM json_each(?9))
           AND EXISTS (SELECT 1 FROM holds AS h INDEXED BY holds_open
                       WHERE h.ended_ms IS NULL AND h.scope_id IN (s.scope_id, s.account_id))))
  AND (?10 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?10) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = t.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
  AND (?12 = '[]' OR EXISTS (
        SELECT 1 FROM json_each(?12) AS w
        WHERE CASE w.value
              WHEN 'paused' THEN t.paused_ms IS NOT NULL OR (t.state < 2 AND q.paused_ms IS NOT NULL)
              WHEN 'backoff' THEN t.state = 1 AND t.executions > 0
              WHEN 'not_before' THEN t.state = 1 AND t.executions = 0
              WHEN 'in_place' THEN t.state = 2 AND t.wait_until_ms > ?13
              ELSE t.state < 2 AND w.value = coalesce(
                  (SELECT CASE WHEN max(h.until_ms IS NULL) THEN 'parked' WHEN max(h.until_ms) > ?13 THEN 'hold'
                               WHEN count(*) > 0 THEN 'probe' END
                   FROM holds AS h INDEXED BY holds_open
                   WHERE h.ended_ms IS NULL AND h.scope_id IN (s.scope_id, s.account_id)),
                  CASE WHEN t.state = 0 AND t.paused_ms IS NULL AND q.paused_ms IS NULL THEN 'line' END)
              END))
ORDER BY t.job_id DESC
LIMIT ?11
