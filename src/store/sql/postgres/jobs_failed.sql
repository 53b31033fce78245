-- As `jobs`, where only failed and cancelled ones are asked for, by state or by what they ended with.
-- Index: jobs_failed, walked backwards.
SELECT j.job_id, j.state, NULL::bigint, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, NULL::bigint, NULL::bigint, NULL::bigint,
       NULL::bigint, NULL::bigint, s.scope_id, s.account_id, j.ended_no, NULL::bigint, NULL, NULL,
       NULL::bigint, NULL, NULL, j.schedule_id
FROM jobs AS j
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE j.state IN ('failed', 'cancelled') AND j.job_id < $1
  AND (cardinality($9::text[]) = 0 OR j.state = ANY ($9))
  AND (cardinality($13::text[]) = 0 OR j.error_cause = ANY ($13))
  AND (cardinality($14::text[]) = 0 OR j.error_class = ANY ($14))
  AND (cardinality($15::text[]) = 0 OR j.error_code = ANY ($15))
  AND (cardinality($16::bigint[]) = 0 OR j.error_http = ANY ($16))
  AND (cardinality($2::text[]) = 0 OR l.queue = ANY ($2)) AND (cardinality($3::text[]) = 0 OR l.tenant = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR s.provider = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR s.account = ANY ($5)) AND (cardinality($6::text[]) = 0 OR s.model = ANY ($6))
  AND ($7::bigint IS NULL OR j.created_ms >= $7) AND ($8::bigint IS NULL OR j.created_ms < $8)
  AND NOT EXISTS (
        SELECT 1 FROM unnest($10::text[], $11::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = j.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY j.job_id DESC
LIMIT $12
