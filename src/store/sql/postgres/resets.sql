-- Refusals before ($1, $2, $3) = (received_ms, fence, n), newest first, with the first send after each that shows whether
-- its word was kept: one that was answered, refused or broke off in the answer. Index: reset_evidence_received,
-- sends_tests, turn_records_tests.
SELECT e.job_id, e.fence, e.n, l.queue, l.tenant, s.provider, s.account, s.model,
       e.received_ms, e.reset_at_ms, e.resume_at_ms, e.skew_ms, e.source_kind, e.source_name, e.raw, e.limit_kind,
       e.cause, e.rule, e.rules_version, e.candidates,
       a.started_ms, a.tests_resume_ms, a.outcome,
       EXISTS (SELECT 1 FROM holds AS h
               WHERE h.refusal_job = e.job_id AND h.refusal_fence = e.fence AND h.refusal_n = e.n
                 AND h."end" = 'released')
FROM reset_evidence AS e
JOIN jobs AS j ON j.job_id = e.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN LATERAL (
    SELECT x.started_ms, x.tests_resume_ms, x.outcome
    FROM (SELECT started_ms, tests_resume_ms, outcome FROM sends
          WHERE tests_job = e.job_id AND tests_fence = e.fence AND tests_n = e.n
            AND outcome IN ('answered', 'refused', 'cut')
          UNION ALL
          SELECT send_started_ms, send_tests_resume_ms, send_outcome FROM turn_records
          WHERE send_tests_job = e.job_id AND send_tests_fence = e.fence AND send_tests_n = e.n
            AND send_outcome IN ('answered', 'refused', 'cut')) AS x
    ORDER BY x.started_ms LIMIT 1
) AS a ON true
WHERE (e.received_ms, e.fence, e.n) < ($1, $2, $3)
  AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
  AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
  AND ($9::bigint IS NULL OR e.received_ms >= $9) AND ($10::bigint IS NULL OR e.received_ms < $10)
  AND (cardinality($11::text[]) = 0 OR e.cause = ANY ($11))
  AND (cardinality($12::text[]) = 0 OR e.candidate_names && $12) AND (cardinality($13::text[]) = 0 OR e.candidate_verdicts && $13)
ORDER BY e.received_ms DESC, e.fence DESC, e.n DESC
LIMIT $14
