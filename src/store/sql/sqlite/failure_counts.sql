-- Failures counted by the dimension ?1 (cause, class, model, provider, account, http, code, queue, hour), the most frequent
-- first; by hour, in order. What has no cause (a lost worker, a passed deadline) is counted by its code. ?2 and ?3 are of
-- `failures` alone. Index: turn_records_failed, sends_ended.
WITH failed AS (
    SELECT r.job_id, r.ended_ms, coalesce(r.cause, r.code) AS cause, r.class, r.code, r.http_status
    FROM turn_records AS r INDEXED BY turn_records_failed
    WHERE r.outcome <> 'completed'
      AND r.ended_ms >= ?9 AND r.ended_ms < ?10
      AND (?11 = '[]' OR coalesce(r.cause, r.code) IN (SELECT value FROM json_each(?11)))
      AND (?12 = '[]' OR r.class IN (SELECT value FROM json_each(?12)))
      AND (?15 = '[]' OR r.code IN (SELECT value FROM json_each(?15)))
      AND (?16 = '[]' OR r.http_status IN (SELECT value FROM json_each(?16)))
      AND (?17 = '[]' OR r.phase IN (SELECT value FROM json_each(?17)))
      AND (?18 = '[]' OR r.rule IN (SELECT value FROM json_each(?18)))
    UNION ALL
    SELECT r.job_id, r.ended_ms, r.cause, r.class,
           CASE WHEN json_valid(r.error) THEN r.error ->> '$.code' END, r.http_status
    FROM sends AS r INDEXED BY sends_ended
    WHERE ?13 = 1
      AND r.ended_ms >= ?9 AND r.ended_ms < ?10
      AND (?11 = '[]' OR r.cause IN (SELECT value FROM json_each(?11)))
      AND (?12 = '[]' OR r.class IN (SELECT value FROM json_each(?12)))
      AND (?15 = '[]' OR CASE WHEN json_valid(r.error) THEN r.error ->> '$.code' END IN (SELECT value FROM json_each(?15)))
      AND (?16 = '[]' OR r.http_status IN (SELECT value FROM json_each(?16)))
      AND (?17 = '[]' OR CASE WHEN json_valid(r.error) THEN r.error ->> '$.phase' END IN (SELECT value FROM json_each(?17)))
      AND (?18 = '[]' OR (SELECT x.rule FROM reset_evidence AS x
                         WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n)
                     IN (SELECT value FROM json_each(?18)))
)
SELECT coalesce(CASE ?1 WHEN 'cause' THEN d.cause WHEN 'class' THEN d.class WHEN 'model' THEN s.model
                        WHEN 'provider' THEN s.provider WHEN 'account' THEN s.account WHEN 'queue' THEN l.queue
                        WHEN 'code' THEN d.code WHEN 'http' THEN CAST(d.http_status AS TEXT)
                        ELSE strftime('%Y-%m-%dT%H:00:00Z', d.ended_ms / 1000, 'unixepoch') END, '') AS value,
       count(*) AS failed, sum(coalesce(j.state, '') = 'succeeded') AS recovered,
       min(d.ended_ms) AS first_ms, max(d.ended_ms) AS last_ms
FROM failed AS d
CROSS JOIN jobs AS j ON j.job_id = d.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
  AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
  AND (?14 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?14) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = d.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
GROUP BY 1
ORDER BY CASE ?1 WHEN 'hour' THEN 0 ELSE -count(*) END, 1
LIMIT ?19
