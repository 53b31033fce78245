-- Failed executions, and replaced sends where $15 says so, before ($1, $2, $3) = (ended_ms, fence, n), newest first; a
-- record's n is beyond every send's. Each half has its own limit, so that each walks its index no further than the page.
-- Index: turn_records_failed, sends_ended.
(SELECT r.job_id, r.fence, NULL::bigint AS n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq,
       r.outcome, r.decision, r.class, r.cause, r.code, r.http_status, r.attempts, r.rule, r.request_id, r.error,
       4294967296 AS place
FROM turn_records AS r
JOIN jobs AS j ON j.job_id = r.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE r.outcome <> 'completed' AND (r.ended_ms, r.fence) < ($1, $2)
  AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
  AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
  AND ($9::bigint IS NULL OR r.ended_ms >= $9) AND ($10::bigint IS NULL OR r.ended_ms < $10)
  AND (cardinality($11::text[]) = 0 OR r.cause = ANY ($11)) AND (cardinality($12::text[]) = 0 OR r.class = ANY ($12))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($13::text[], $14::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = r.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY r.ended_ms DESC, r.fence DESC
LIMIT $16)
UNION ALL
(SELECT r.job_id, r.fence, r.n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq, NULL,
       'retry_in_place', r.class, r.cause, NULL, r.http_status, NULL, NULL, NULL, r.error, r.n
FROM sends AS r
JOIN jobs AS j ON j.job_id = r.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE $15 AND (r.ended_ms, r.fence, r.n) < ($1, $2, $3)
  AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
  AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
  AND ($9::bigint IS NULL OR r.ended_ms >= $9) AND ($10::bigint IS NULL OR r.ended_ms < $10)
  AND (cardinality($11::text[]) = 0 OR r.cause = ANY ($11)) AND (cardinality($12::text[]) = 0 OR r.class = ANY ($12))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($13::text[], $14::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = r.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY r.ended_ms DESC, r.fence DESC, r.n DESC
LIMIT $16)
ORDER BY 9 DESC, 2 DESC, 21 DESC
LIMIT $16
