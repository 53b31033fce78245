-- Ended jobs before (?18, ?19) = (finished_ms, ended_no), the latest end first; those whose records are gone (?20 = 1) and
-- the others each for themselves, because the index has them apart. ?21 the schedule, ?22 the highest id.
-- Index: jobs_kept, walked backwards.
SELECT j.job_id, j.state, NULL, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, NULL, NULL, NULL,
       NULL, NULL, s.scope_id, s.account_id, j.ended_no, NULL, NULL, NULL, NULL, NULL, NULL, j.schedule_id
FROM jobs AS j INDEXED BY jobs_kept
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE j.pruned = ?20 AND j.finished_ms IS NOT NULL AND (j.finished_ms, j.ended_no) < (?18, ?19)
  AND j.finished_ms >= coalesce(?7, -9223372036854775808)
  AND (?9 = '[]' OR j.state IN (SELECT value FROM json_each(?9)))
  AND (?2 = '[]' OR l.queue IN (SELECT value FROM json_each(?2)))
  AND (?3 = '[]' OR l.tenant IN (SELECT value FROM json_each(?3)))
  AND (?4 = '[]' OR s.provider IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR s.account IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.model IN (SELECT value FROM json_each(?6)))
  AND (?21 IS NULL OR j.schedule_id = ?21) AND (?22 IS NULL OR j.job_id <= ?22)
  AND (?14 = '[]' OR j.error_cause IN (SELECT value FROM json_each(?14)))
  AND (?15 = '[]' OR j.error_class IN (SELECT value FROM json_each(?15)))
  AND (?16 = '[]' OR j.error_code IN (SELECT value FROM json_each(?16)))
  AND (?17 = '[]' OR j.error_http IN (SELECT value FROM json_each(?17)))
  AND (?10 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?10) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = j.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
ORDER BY j.finished_ms DESC, j.ended_no DESC
LIMIT ?11
