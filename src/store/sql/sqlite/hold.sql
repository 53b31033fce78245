-- One hold, as `holds` has it. Index: primary keys.
SELECT h.hold_id, s.provider, s.account, s.model, h.cause, h.kind, h.opened_ms, h.until_ms, h.source, h.raw,
       h.refusal_job, h.refusal_fence, h.refusal_n, h.extended, h.barren, h.probe_job, h.ended_ms, h."end",
       CASE WHEN h.ended_ms IS NULL THEN (
           SELECT min(coalesce(sum(l.ready), 0), 10000)
           FROM scopes AS x CROSS JOIN lanes AS l INDEXED BY lanes_active ON l.scope_id = x.scope_id AND l.ready > 0
           WHERE x.scope_id = h.scope_id OR x.account_id = h.scope_id
       ) ELSE 0 END, h.scope_id, coalesce(
           (SELECT d.http_status FROM sends AS d
            WHERE d.job_id = h.refusal_job AND d.fence = h.refusal_fence AND d.n = h.refusal_n),
           (SELECT r.send_http_status FROM turn_records AS r
            WHERE r.job_id = h.refusal_job AND r.fence = h.refusal_fence AND r.send_n = h.refusal_n)) AS refusal_status
FROM holds AS h CROSS JOIN scopes AS s ON s.scope_id = h.scope_id
WHERE h.hold_id = ?1
