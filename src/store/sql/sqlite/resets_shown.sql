-- The refusals ?1 = [[job, fence, n], …] in that order, whole: with the first send that tested each, the hold that it opened
-- or dated, and what was decided. Index: primary keys, sends_tests, turn_records_tests, hold_events_refusal.
SELECT e.job_id, e.fence, l.queue, l.tenant, s.provider, s.account, s.model,
       e.n, e.received_ms, e.reset_at_ms, e.resume_at_ms, e.skew_ms, e.source_kind, e.source_name, e.raw, e.limit_kind,
       e.cause, e.rule, e.rules_version, e.candidates,
       (SELECT json_array(hex(a.job_id), a.fence, a.n, a.started_ms, a.tests_resume_ms, a.outcome,
                          CASE a.outcome WHEN 'refused' THEN (
                              SELECT x.reset_at_ms FROM reset_evidence AS x
                              WHERE x.job_id = a.job_id AND x.fence = a.fence AND x.n = a.n) END)
        FROM (SELECT job_id, fence, n, started_ms, tests_resume_ms, outcome FROM sends INDEXED BY sends_tests
              WHERE tests_job = e.job_id AND tests_fence = e.fence AND tests_n = e.n
                AND outcome IN ('answered', 'refused', 'cut', 'cancelled')
              UNION ALL
              SELECT job_id, fence, send_n, send_started_ms, send_tests_resume_ms, send_outcome
              FROM turn_records INDEXED BY turn_records_tests
              WHERE send_tests_job = e.job_id AND send_tests_fence = e.fence AND send_tests_n = e.n
                AND send_outcome IN ('answered', 'refused', 'cut', 'cancelled')) AS a
        ORDER BY a.outcome = 'cancelled', a.started_ms LIMIT 1) AS test,
       (SELECT json_array(hex(h.hold_id), h.until_ms, h."end", h.ended_ms)
        FROM hold_events AS v INDEXED BY hold_events_refusal
        CROSS JOIN holds AS h ON h.hold_id = v.hold_id
        WHERE v.job_id = e.job_id AND v.fence = e.fence AND v.n = e.n
          AND v.event IN ('opened', 'extended', 'refused_again')
        LIMIT 1) AS hold,
       j.state,
       CASE WHEN EXISTS (SELECT 1 FROM sends AS x WHERE x.job_id = e.job_id AND x.fence = e.fence AND x.n = e.n)
            THEN 'retry_in_place'
            ELSE (SELECT x.decision FROM turn_records AS x WHERE x.job_id = e.job_id AND x.fence = e.fence)
       END AS decision
FROM json_each(?1) AS w
CROSS JOIN reset_evidence AS e ON e.job_id = unhex(w.value ->> 0) AND e.fence = w.value ->> 1 AND e.n = w.value ->> 2
CROSS JOIN jobs AS j ON j.job_id = e.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
ORDER BY w.key
