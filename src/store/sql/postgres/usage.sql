-- Tokens of executions that ended from $2 until before $3, by the dimension $1 (model, tenant, queue, provider, account, day,
-- or the label $11, of jobs that have it), the most first; by day, the newest. A figure beyond $13 is no count of tokens.
-- Index: turn_records_ended (covering).
SELECT d.value, d.jobs, d.executions, d.sends, d.input_tokens, d.output_tokens, d.total_tokens, d.unreported
FROM (
    SELECT coalesce(CASE $1::text WHEN 'model' THEN s.model WHEN 'tenant' THEN l.tenant WHEN 'queue' THEN l.queue
                                  WHEN 'provider' THEN s.provider WHEN 'account' THEN s.account
                                  WHEN 'day' THEN to_char(to_timestamp(r.ended_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
                                  ELSE g.value END, '') COLLATE "C" AS value,
           count(DISTINCT r.job_id) AS jobs, count(*) AS executions, sum(coalesce(r.attempts, 0))::bigint AS sends,
           sum(least(coalesce(r.input_tokens, 0), $13))::bigint AS input_tokens,
           sum(least(coalesce(r.output_tokens, 0), $13))::bigint AS output_tokens,
           sum(least(coalesce(r.total_tokens, r.input_tokens::numeric + r.output_tokens, r.input_tokens,
                              r.output_tokens, 0), $13))::bigint AS total_tokens,
           count(*) FILTER (WHERE r.outcome IN ('completed', 'truncated')
                              AND coalesce(r.input_tokens, r.output_tokens, r.total_tokens) IS NULL) AS unreported
    FROM turn_records AS r
    JOIN jobs AS j ON j.job_id = r.job_id
    JOIN lanes AS l ON l.lane_id = j.lane_id
    JOIN scopes AS s ON s.scope_id = l.scope_id
    LEFT JOIN labels AS g ON $1 = 'label' AND g.job_id = r.job_id AND g.key = $11
    WHERE r.ended_ms >= $2 AND r.ended_ms < $3 AND ($1 <> 'label' OR g.job_id IS NOT NULL)
      AND (cardinality($4::text[]) = 0 OR l.queue = ANY ($4)) AND (cardinality($5::text[]) = 0 OR l.tenant = ANY ($5))
      AND (cardinality($6::text[]) = 0 OR s.provider = ANY ($6))
      AND (cardinality($7::text[]) = 0 OR s.account = ANY ($7)) AND (cardinality($8::text[]) = 0 OR s.model = ANY ($8))
      AND NOT EXISTS (
            SELECT 1 FROM unnest($9::text[], $10::text[]) AS f (key, value)
            WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = r.job_id AND b.key = f.key AND b.value = f.value))
    GROUP BY 1
) AS d
ORDER BY CASE $1 WHEN 'day' THEN d.value END DESC, d.total_tokens DESC, d.value
LIMIT $12
