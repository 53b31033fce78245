-- Ended jobs before ($1, $17) = (finished_ms, ended_no), the latest end first; those whose records are gone ($18 = 1) and
-- the others each for themselves, because the index has them apart. $19 the schedule, $20 the highest id.
-- Index: jobs_kept, walked backwards.
SELECT j.job_id, j.state, NULL::bigint, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, NULL::bigint, NULL::bigint, NULL::bigint,
       NULL::bigint, NULL::bigint, s.scope_id, s.account_id, j.ended_no, NULL::bigint, NULL, NULL,
       NULL::bigint, NULL, NULL, j.schedule_id
FROM jobs AS j
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE j.pruned = $18 AND j.finished_ms IS NOT NULL AND (j.finished_ms, j.ended_no) < ($1, $17)
  AND j.finished_ms >= coalesce($7, '-9223372036854775808'::bigint) AND ($8::bigint IS NULL OR j.finished_ms < $8)
  AND (cardinality($9::text[]) = 0 OR j.state = ANY ($9))
  AND (cardinality($2::text[]) = 0 OR l.queue = ANY ($2)) AND (cardinality($3::text[]) = 0 OR l.tenant = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR s.provider = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR s.account = ANY ($5)) AND (cardinality($6::text[]) = 0 OR s.model = ANY ($6))
  AND ($19::uuid IS NULL OR j.schedule_id = $19) AND ($20::uuid IS NULL OR j.job_id <= $20)
  AND (cardinality($13::text[]) = 0 OR j.error_cause = ANY ($13))
  AND (cardinality($14::text[]) = 0 OR j.error_class = ANY ($14))
  AND (cardinality($15::text[]) = 0 OR j.error_code = ANY ($15))
  AND (cardinality($16::bigint[]) = 0 OR j.error_http = ANY ($16))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($10::text[], $11::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = j.job_id AND b.key = f.key AND b.value = f.value))
ORDER BY j.finished_ms DESC, j.ended_no DESC
LIMIT $12
