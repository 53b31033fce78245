-- Ended jobs after the place ?1, in the order in which they ended. Index: jobs_ended.
SELECT j.job_id, j.state, NULL, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, NULL, NULL, NULL,
       NULL, NULL, s.scope_id, s.account_id, j.ended_no, NULL, NULL, NULL, NULL, NULL, NULL, j.schedule_id
FROM jobs AS j INDEXED BY jobs_ended
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE j.ended_no IS NOT NULL AND j.ended_no > ?1
  AND (?2 = '[]' OR l.queue IN (SELECT value FROM json_each(?2)))
  AND (?3 = '[]' OR l.tenant IN (SELECT value FROM json_each(?3)))
  AND (?4 = '[]' OR s.provider IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR s.account IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.model IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR j.finished_ms >= ?7) AND (?8 IS NULL OR j.finished_ms < ?8)
  AND (?9 = '[]' OR j.state IN (SELECT value FROM json_each(?9)))
  AND (?10 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?10) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = j.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
  AND (?14 = '[]' OR j.error_cause IN (SELECT value FROM json_each(?14)))
  AND (?15 = '[]' OR j.error_class IN (SELECT value FROM json_each(?15)))
  AND (?16 = '[]' OR j.error_code IN (SELECT value FROM json_each(?16)))
  AND (?17 = '[]' OR j.error_http IN (SELECT value FROM json_each(?17)))
ORDER BY j.ended_no
LIMIT ?11
