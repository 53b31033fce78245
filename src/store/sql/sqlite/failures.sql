-- Failed executions, and replaced sends where ?13 says so, before (?1, ?2, ?3) = (ended_ms, fence, n), newest first; a
-- record's n is beyond every send's. A replaced send's code and phase stand in its error document, its rule beside its
-- evidence. Index: turn_records_failed, sends_ended.
SELECT r.job_id, r.fence, NULL AS n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq, r.outcome,
       r.decision, r.class, r.cause, r.code, r.http_status, r.attempts, r.rule, r.request_id, r.error,
       4294967296 AS place
FROM turn_records AS r INDEXED BY turn_records_failed
CROSS JOIN jobs AS j ON j.job_id = r.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE r.outcome <> 'completed' AND (r.ended_ms, r.fence) < (?1, ?2)
  AND (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
  AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
  AND r.ended_ms >= ?9
  AND (?11 = '[]' OR coalesce(r.cause, r.code) IN (SELECT value FROM json_each(?11)))
  AND (?12 = '[]' OR r.class IN (SELECT value FROM json_each(?12)))
  AND (?15 = '[]' OR r.code IN (SELECT value FROM json_each(?15)))
  AND (?16 = '[]' OR r.http_status IN (SELECT value FROM json_each(?16)))
  AND (?17 = '[]' OR r.phase IN (SELECT value FROM json_each(?17)))
  AND (?18 = '[]' OR r.rule IN (SELECT value FROM json_each(?18)))
  AND (?14 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?14) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = r.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
UNION ALL
SELECT r.job_id, r.fence, r.n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq, NULL,
       'retry_in_place', r.class, r.cause, CASE WHEN json_valid(r.error) THEN r.error ->> '$.code' END, r.http_status,
       NULL, (SELECT x.rule FROM reset_evidence AS x WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n),
       NULL, r.error, r.n
FROM sends AS r INDEXED BY sends_ended
CROSS JOIN jobs AS j ON j.job_id = r.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE ?13 = 1 AND (r.ended_ms, r.fence, r.n) < (?1, ?2, ?3)
  AND (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
  AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
  AND r.ended_ms >= ?9
  AND (?11 = '[]' OR r.cause IN (SELECT value FROM json_each(?11)))
  AND (?12 = '[]' OR r.class IN (SELECT value FROM json_each(?12)))
  AND (?15 = '[]' OR CASE WHEN json_valid(r.error) THEN r.error ->> '$.code' END IN (SELECT value FROM json_each(?15)))
  AND (?16 = '[]' OR r.http_status IN (SELECT value FROM json_each(?16)))
  AND (?17 = '[]' OR CASE WHEN json_valid(r.error) THEN r.error ->> '$.phase' END IN (SELECT value FROM json_each(?17)))
  AND (?18 = '[]' OR (SELECT x.rule FROM reset_evidence AS x WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n)
                     IN (SELECT value FROM json_each(?18)))
  AND (?14 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?14) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = r.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
ORDER BY 9 DESC, 2 DESC, 21 DESC
LIMIT ?19
