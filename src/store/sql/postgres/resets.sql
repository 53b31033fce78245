-- Refusals before ($1, $2, $3) = (received_ms, fence, n), newest first: as much of each as its word and its sources are
-- reckoned by. The test is the first send that showed anything (one that was cancelled only where no other did); what is
-- known of its hold and its job is asked for only where none did.
-- Index: reset_evidence_received, sends_tests, turn_records_tests, hold_events_refusal, primary keys.
SELECT e.job_id, e.fence, e.n, e.received_ms, e.reset_at_ms, e.resume_at_ms, e.source_kind, e.source_name, e.provider,
       e.candidates,
       a.job_id AS test_job, a.fence AS test_fence, a.n AS test_n, a.started_ms, a.tests_resume_ms, a.outcome,
       CASE a.outcome WHEN 'refused' THEN (
           SELECT x.reset_at_ms FROM reset_evidence AS x WHERE x.job_id = a.job_id AND x.fence = a.fence AND x.n = a.n
       ) END AS again_at_ms,
       h.hold_id, h.until_ms, h."end", h.ended_ms,
       CASE WHEN coalesce(a.outcome, 'cancelled') = 'cancelled'
            THEN (SELECT j.state FROM jobs AS j WHERE j.job_id = e.job_id) END AS state
FROM (
    SELECT e.job_id, e.fence, e.n, e.received_ms, e.reset_at_ms, e.resume_at_ms, e.source_kind, e.source_name, s.provider,
           e.candidates
    FROM reset_evidence AS e
    JOIN lanes AS l ON l.lane_id = e.lane_id
    JOIN scopes AS s ON s.scope_id = l.scope_id
    WHERE (e.received_ms, e.fence, e.n) < ($1, $2, $3) AND e.received_ms >= $9
      AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
      AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
      AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
      AND (cardinality($10::text[]) = 0 OR e.cause = ANY ($10))
      AND (cardinality($11::text[]) = 0 OR e.candidate_names && $11)
      AND (cardinality($12::text[]) = 0 OR e.candidate_verdicts && $12)
    ORDER BY e.received_ms DESC, e.fence DESC, e.n DESC
    LIMIT $13
) AS e
LEFT JOIN LATERAL (
    SELECT x.job_id, x.fence, x.n, x.started_ms, x.tests_resume_ms, x.outcome
    FROM (SELECT job_id, fence, n, started_ms, tests_resume_ms, outcome FROM sends
          WHERE tests_job = e.job_id AND tests_fence = e.fence AND tests_n = e.n
            AND outcome IN ('answered', 'refused', 'cut', 'cancelled')
          UNION ALL
          SELECT job_id, fence, send_n, send_started_ms, send_tests_resume_ms, send_outcome FROM turn_records
          WHERE send_tests_job = e.job_id AND send_tests_fence = e.fence AND send_tests_n = e.n
            AND send_outcome IN ('answered', 'refused', 'cut', 'cancelled')) AS x
    ORDER BY x.outcome = 'cancelled', x.started_ms LIMIT 1
) AS a ON true
LEFT JOIN LATERAL (
    SELECT x.hold_id, x.until_ms, x."end", x.ended_ms
    FROM hold_events AS v JOIN holds AS x ON x.hold_id = v.hold_id
    WHERE coalesce(a.outcome, 'cancelled') = 'cancelled'
      AND v.job_id = e.job_id AND v.fence = e.fence AND v.n = e.n AND v.event IN ('opened', 'extended', 'refused_again')
    LIMIT 1
) AS h ON true
ORDER BY e.received_ms DESC, e.fence DESC, e.n DESC
