-- The refusals ($1, $2, $3) = (job, fence, n), each a list, in that order, whole: with the first send that tested
-- each, the hold that it opened or dated, and what was decided.
-- Index: primary keys, sends_tests, turn_records_tests, hold_events_refusal.
SELECT e.job_id, e.fence, e.n, l.queue, l.tenant, s.provider, s.account, s.model,
       e.received_ms, e.reset_at_ms, e.resume_at_ms, e.skew_ms, e.source_kind, e.source_name, e.raw, e.limit_kind,
       e.cause, e.rule, e.rules_version, e.candidates,
       a.job_id AS test_job, a.fence AS test_fence, a.n AS test_n, a.started_ms, a.tests_resume_ms, a.outcome,
       CASE a.outcome WHEN 'refused' THEN (
           SELECT x.reset_at_ms FROM reset_evidence AS x WHERE x.job_id = a.job_id AND x.fence = a.fence AND x.n = a.n
       ) END AS again_at_ms,
       h.hold_id, h.until_ms, h."end", h.ended_ms, j.state,
       CASE WHEN EXISTS (SELECT 1 FROM sends AS x WHERE x.job_id = e.job_id AND x.fence = e.fence AND x.n = e.n)
            THEN 'retry_in_place'
            ELSE (SELECT x.decision FROM turn_records AS x WHERE x.job_id = e.job_id AND x.fence = e.fence)
       END AS decision
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (job_id, fence, n, place)
JOIN reset_evidence AS e ON e.job_id = w.job_id AND e.fence = w.fence AND e.n = w.n
JOIN jobs AS j ON j.job_id = e.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
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
    WHERE v.job_id = e.job_id AND v.fence = e.fence AND v.n = e.n AND v.event IN ('opened', 'extended', 'refused_again')
    LIMIT 1
) AS h ON true
ORDER BY w.place
