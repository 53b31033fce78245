-- Refusals before (?1, ?2, ?3) = (received_ms, fence, n), newest first: as much of each as its word and its sources are
-- reckoned by. The test is the first send that showed anything (one that was cancelled only where no other did); what is
-- known of its hold and its job is asked for only where none did.
-- Index: reset_evidence_received, sends_tests, turn_records_tests, hold_events_refusal, primary keys.
SELECT d.job_id, d.fence, d.n, d.received_ms, d.reset_at_ms, d.resume_at_ms, d.source_kind, d.source_name, d.provider,
       d.candidates, d.test,
       CASE WHEN coalesce(d.test ->> 5, 'cancelled') = 'cancelled' THEN (SELECT json_array(hex(h.hold_id), h.until_ms, h."end", h.ended_ms)
            FROM hold_events AS v INDEXED BY hold_events_refusal
            CROSS JOIN holds AS h ON h.hold_id = v.hold_id
            WHERE v.job_id = d.job_id AND v.fence = d.fence AND v.n = d.n
              AND v.event IN ('opened', 'extended', 'refused_again')
            LIMIT 1) END AS hold,
       CASE WHEN coalesce(d.test ->> 5, 'cancelled') = 'cancelled'
            THEN (SELECT j.state FROM jobs AS j WHERE j.job_id = d.job_id) END AS state
FROM (
    SELECT e.job_id, e.fence, e.n, e.received_ms, e.reset_at_ms, e.resume_at_ms, e.source_kind, e.source_name, s.provider,
           e.candidates,
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
            ORDER BY a.outcome = 'cancelled', a.started_ms LIMIT 1) AS test
    FROM reset_evidence AS e INDEXED BY reset_evidence_received
    CROSS JOIN lanes AS l ON l.lane_id = e.lane_id
    CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
    WHERE (e.received_ms, e.fence, e.n) < (?1, ?2, ?3)
      AND (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
      AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
      AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
      AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
      AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
      AND e.received_ms >= ?9
      AND (?10 = '[]' OR e.cause IN (SELECT value FROM json_each(?10)))
      AND (?11 = '[]' OR EXISTS (
            SELECT 1 FROM json_each(CASE WHEN json_valid(e.candidates) THEN e.candidates ELSE '[]' END) AS c
            WHERE CASE c.type WHEN 'object' THEN c.value ->> 'name' END IN (SELECT value FROM json_each(?11))))
      AND (?12 = '[]' OR EXISTS (
            SELECT 1 FROM json_each(CASE WHEN json_valid(e.candidates) THEN e.candidates ELSE '[]' END) AS c
            WHERE CASE c.type WHEN 'object' THEN c.value ->> 'verdict' END IN (SELECT value FROM json_each(?12))))
    ORDER BY e.received_ms DESC, e.fence DESC, e.n DESC
    LIMIT ?13
) AS d
ORDER BY d.received_ms DESC, d.fence DESC, d.n DESC
