-- Refusals before (?1, ?2, ?3) = (received_ms, fence, n), newest first, with the first send after each that shows whether
-- its word was kept: one that was answered, refused or broke off in the answer. Index: reset_evidence_received,
-- sends_tests, turn_records_tests.
SELECT e.job_id, e.fence, e.n, l.queue, l.tenant, s.provider, s.account, s.model,
       e.received_ms, e.reset_at_ms, e.resume_at_ms, e.skew_ms, e.source_kind, e.source_name, e.raw, e.limit_kind,
       e.cause, e.rule, e.rules_version, e.candidates,
       (SELECT json_array(a.started_ms, a.tests_resume_ms, a.outcome)
        FROM (SELECT started_ms, tests_resume_ms, outcome FROM sends INDEXED BY sends_tests
              WHERE tests_job = e.job_id AND tests_fence = e.fence AND tests_n = e.n
                AND outcome IN ('answered', 'refused', 'cut')
              UNION ALL
              SELECT send_started_ms, send_tests_resume_ms, send_outcome
              FROM turn_records INDEXED BY turn_records_tests
              WHERE send_tests_job = e.job_id AND send_tests_fence = e.fence AND send_tests_n = e.n
                AND send_outcome IN ('answered', 'refused', 'cut')) AS a
        ORDER BY a.started_ms LIMIT 1) AS test,
       EXISTS (SELECT 1 FROM holds AS h
               WHERE h.refusal_job = e.job_id AND h.refusal_fence = e.fence AND h.refusal_n = e.n
                 AND h."end" = 'released')
FROM reset_evidence AS e INDEXED BY reset_evidence_received
CROSS JOIN jobs AS j ON j.job_id = e.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE (e.received_ms, e.fence, e.n) < (?1, ?2, ?3)
  AND (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
  AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
  AND (?9 IS NULL OR e.received_ms >= ?9) AND (?10 IS NULL OR e.received_ms < ?10)
  AND (?11 = '[]' OR e.cause IN (SELECT value FROM json_each(?11)))
  AND (?12 = '[]' OR EXISTS (SELECT 1 FROM json_each(e.candidates) AS c
                        WHERE c.value ->> 'name' IN (SELECT value FROM json_each(?12))))
  AND (?13 = '[]' OR EXISTS (SELECT 1 FROM json_each(e.candidates) AS c
                        WHERE c.value ->> 'verdict' IN (SELECT value FROM json_each(?13))))
ORDER BY e.received_ms DESC, e.fence DESC, e.n DESC
LIMIT ?14
