-- Holds with the turns that wait behind each (counted up to 10,000), newest first. Index: holds_opened; holds_open where
-- only open ones are asked for; primary keys of the refusal.
SELECT h.hold_id, s.provider, s.account, s.model, h.cause, h.kind, h.opened_ms, h.until_ms, h.source, h.raw,
       h.refusal_job, h.refusal_fence, h.refusal_n, h.extended, h.barren, h.probe_job, h.ended_ms, h."end",
       CASE WHEN h.ended_ms IS NULL THEN (
           SELECT least(coalesce(sum(l.ready), 0), 10000)::bigint
           FROM scopes AS x JOIN lanes AS l ON l.scope_id = x.scope_id AND l.ready > 0
           WHERE x.scope_id = h.scope_id OR x.account_id = h.scope_id
       ) ELSE 0 END AS waiting, h.scope_id, coalesce(
           (SELECT d.http_status FROM sends AS d
            WHERE d.job_id = h.refusal_job AND d.fence = h.refusal_fence AND d.n = h.refusal_n),
           (SELECT r.send_http_status FROM turn_records AS r
            WHERE r.job_id = h.refusal_job AND r.fence = h.refusal_fence AND r.send_n = h.refusal_n)) AS refusal_status
FROM holds AS h JOIN scopes AS s ON s.scope_id = h.scope_id
WHERE ($1 OR h.ended_ms IS NULL)
  AND (cardinality($2::text[]) = 0 OR s.provider = ANY ($2)) AND (cardinality($3::text[]) = 0 OR s.account = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR s.model = ANY ($4))
  AND ($5::bigint IS NULL OR coalesce(h.ended_ms, $5) >= $5) AND ($6::bigint IS NULL OR h.opened_ms < $6)
ORDER BY h.opened_ms DESC, h.hold_id DESC
LIMIT $7
