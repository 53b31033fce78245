-- Failed executions, and replaced sends where $18 says so, before ($1, $2, $3) = (ended_ms, fence, n), newest first; a
-- record's n is beyond every send's. A replaced send's code and phase stand in its error document, its rule beside its
-- evidence. Each half has its own limit, so that each walks its index no further than the page.
-- Index: turn_records_failed, sends_ended.
(SELECT r.job_id, r.fence, NULL::bigint AS n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq,
       r.outcome, r.decision, r.class, r.cause, r.code, r.http_status, r.attempts, r.rule, r.request_id, r.error,
       4294967296 AS place
FROM turn_records AS r
JOIN jobs AS j ON j.job_id = r.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE r.outcome <> 'completed' AND (r.ended_ms, r.fence) < ($1, $2) AND r.ended_ms BETWEEN $9 AND $1
  AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
  AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
  AND (cardinality($10::text[]) = 0 OR coalesce(r.cause, r.code) = ANY ($10))
  AND (cardinality($11::text[]) = 0 OR r.class = ANY ($11))
  AND (cardinality($14::text[]) = 0 OR r.code = ANY ($14))
  AND (cardinality($15::bigint[]) = 0 OR r.http_status = ANY ($15))
  AND (cardinality($16::text[]) = 0 OR r.phase = ANY ($16))
  AND (cardinality($17::text[]) = 0 OR r.rule = ANY ($17))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($12::text[], $13::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = r.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY r.ended_ms DESC, r.fence DESC
LIMIT $19)
UNION ALL
(SELECT r.job_id, r.fence, r.n, l.queue, l.tenant, s.provider, s.account, s.model, r.ended_ms, r.seq, NULL,
       'retry_in_place', r.class, r.cause, document_word(r.error, 'code'), r.http_status, NULL,
       (SELECT x.rule FROM reset_evidence AS x WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n),
       NULL, r.error, r.n
FROM sends AS r
JOIN jobs AS j ON j.job_id = r.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE $18 AND (r.ended_ms, r.fence, r.n) < ($1, $2, $3) AND r.ended_ms BETWEEN $9 AND $1
  AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
  AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
  AND (cardinality($10::text[]) = 0 OR r.cause = ANY ($10))
  AND (cardinality($11::text[]) = 0 OR r.class = ANY ($11))
  AND (cardinality($14::text[]) = 0 OR document_word(r.error, 'code') = ANY ($14))
  AND (cardinality($15::bigint[]) = 0 OR r.http_status = ANY ($15))
  AND (cardinality($16::text[]) = 0 OR document_word(r.error, 'phase') = ANY ($16))
  AND (cardinality($17::text[]) = 0
       OR (SELECT x.rule FROM reset_evidence AS x WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n) = ANY ($17))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($12::text[], $13::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = r.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY r.ended_ms DESC, r.fence DESC, r.n DESC
LIMIT $19)
ORDER BY 9 DESC, 2 DESC, 21 DESC
LIMIT $19
