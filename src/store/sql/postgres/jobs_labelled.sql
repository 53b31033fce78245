-- As `jobs`, of those that carry the label $19 = $20. Index: labels_value, walked backwards.
SELECT j.job_id, j.state, t.state, l.queue, l.tenant, s.provider, s.account, s.model, j.entry, j.priority, j.spec,
       j.result, j.error, j.created_ms, j.finished_ms, j.deadline_ms, j.retry_of, t.seq, t.due_ms, t.executions,
       t.deferrals, t.wait_until_ms, s.scope_id, s.account_id, j.ended_no, t.paused_ms, t.paused_by, t.pause_reason,
       q.paused_ms, q.paused_by, q.pause_reason, j.schedule_id
FROM labels AS k
JOIN jobs AS j ON j.job_id = k.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN turns AS t ON t.job_id = j.job_id
LEFT JOIN queues AS q ON q.queue = l.queue
WHERE k.key = $19 AND k.value = $20 AND k.job_id < $1
  AND (cardinality($2::text[]) = 0 OR l.queue = ANY ($2)) AND (cardinality($3::text[]) = 0 OR l.tenant = ANY ($3))
  AND (cardinality($4::text[]) = 0 OR s.provider = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR s.account = ANY ($5)) AND (cardinality($6::text[]) = 0 OR s.model = ANY ($6))
  AND ($7::bigint IS NULL OR j.created_ms >= $7) AND ($8::bigint IS NULL OR j.created_ms < $8)
  AND (cardinality($9::text[]) = 0
       OR coalesce(j.state, CASE t.state WHEN 2 THEN 'running' ELSE 'queued' END) = ANY ($9)
       OR (j.state IS NULL AND t.state < 2 AND 'waiting' = ANY ($9))
       OR (j.state IS NULL AND t.state < 2 AND 'deferred' = ANY ($9)
           AND EXISTS (SELECT 1 FROM holds AS h
                       WHERE h.ended_ms IS NULL AND h.scope_id IN (s.scope_id, s.account_id))))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($10::text[], $11::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = j.job_id AND b.key = f.key AND b.value = f.value))
  AND (cardinality($17::text[]) = 0 OR EXISTS (
        SELECT 1 FROM unnest($17::text[]) AS w (why)
        WHERE CASE w.why
              WHEN 'paused' THEN t.paused_ms IS NOT NULL OR (t.state < 2 AND q.paused_ms IS NOT NULL)
              WHEN 'backoff' THEN t.state = 1 AND t.executions > 0
              WHEN 'not_before' THEN t.state = 1 AND t.executions = 0
              WHEN 'in_place' THEN t.state = 2 AND t.wait_until_ms > $18
              ELSE t.state < 2 AND w.why = coalesce(
                  (SELECT CASE WHEN bool_or(h.until_ms IS NULL) THEN 'parked' WHEN max(h.until_ms) > $18 THEN 'hold'
                               WHEN count(*) > 0 THEN 'probe' END
                   FROM holds AS h
                   WHERE h.ended_ms IS NULL AND h.scope_id IN (s.scope_id, s.account_id)),
                  CASE WHEN t.state = 0 AND t.paused_ms IS NULL AND q.paused_ms IS NULL THEN 'line' END)
              END))
  AND (cardinality($13::text[]) = 0 OR j.error_cause = ANY ($13))
  AND (cardinality($14::text[]) = 0 OR j.error_class = ANY ($14))
  AND (cardinality($15::text[]) = 0 OR j.error_code = ANY ($15))
  AND (cardinality($16::bigint[]) = 0 OR j.error_http = ANY ($16))
ORDER BY k.job_id DESC
LIMIT $12
