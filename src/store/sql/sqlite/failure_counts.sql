-- Failures counted by the dimension ?1 (cause, class, model, provider, account, hour), the most frequent first. What has
-- no cause (a lost worker, a passed deadline) is counted by its code. Index: turn_records_failed, sends_ended.
WITH failed AS (
    SELECT r.job_id, r.ended_ms, coalesce(r.cause, r.code) AS cause, r.class
    FROM turn_records AS r INDEXED BY turn_records_failed
    WHERE r.outcome <> 'completed' AND (?8 IS NULL OR r.ended_ms >= ?8) AND (?9 IS NULL OR r.ended_ms < ?9)
    UNION ALL
    SELECT r.job_id, r.ended_ms, r.cause, r.class
    FROM sends AS r INDEXED BY sends_ended
    WHERE ?2 = 1 AND (?8 IS NULL OR r.ended_ms >= ?8) AND (?9 IS NULL OR r.ended_ms < ?9)
)
SELECT coalesce(CASE ?1 WHEN 'cause' THEN d.cause WHEN 'class' THEN d.class WHEN 'model' THEN s.model
                        WHEN 'provider' THEN s.provider WHEN 'account' THEN s.account
                        ELSE strftime('%Y-%m-%dT%H:00:00Z', d.ended_ms / 1000, 'unixepoch') END, '') AS value,
       count(*) AS failed, min(d.ended_ms) AS first_ms, max(d.ended_ms) AS last_ms
FROM failed AS d
CROSS JOIN jobs AS j ON j.job_id = d.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE (?3 = '[]' OR l.queue IN (SELECT value FROM json_each(?3)))
  AND (?4 = '[]' OR l.tenant IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR s.provider IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.account IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.model IN (SELECT value FROM json_each(?7)))
  AND (?10 = '[]' OR d.cause IN (SELECT value FROM json_each(?10)))
  AND (?11 = '[]' OR d.class IN (SELECT value FROM json_each(?11)))
  AND (?12 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?12) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = d.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
GROUP BY 1
ORDER BY CASE ?1 WHEN 'hour' THEN 0 ELSE -count(*) END, 1
LIMIT ?13
