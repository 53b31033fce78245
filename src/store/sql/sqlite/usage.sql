-- Tokens of executions that ended from ?2 until before ?3, by the dimension ?1 (model, tenant, queue, provider, account, day,
-- or the label ?10, of jobs that have it), the most first; by day, the newest. A figure beyond ?12 is no count of tokens.
-- Index: turn_records_ended (covering).
SELECT coalesce(CASE ?1 WHEN 'model' THEN s.model WHEN 'tenant' THEN l.tenant WHEN 'queue' THEN l.queue
                        WHEN 'provider' THEN s.provider WHEN 'account' THEN s.account
                        WHEN 'day' THEN strftime('%Y-%m-%d', r.ended_ms / 1000, 'unixepoch')
                        ELSE g.value END, '') AS value,
       count(DISTINCT r.job_id) AS jobs, count(*) AS executions, sum(coalesce(r.attempts, 0)) AS sends,
       sum(min(coalesce(r.input_tokens, 0), ?12)) AS input_tokens,
       sum(min(coalesce(r.output_tokens, 0), ?12)) AS output_tokens,
       sum(min(coalesce(r.total_tokens, r.input_tokens + r.output_tokens, r.input_tokens, r.output_tokens, 0), ?12))
           AS total_tokens,
       sum(r.outcome IN ('completed', 'truncated')
           AND coalesce(r.input_tokens, r.output_tokens, r.total_tokens) IS NULL) AS unreported
FROM turn_records AS r INDEXED BY turn_records_ended
CROSS JOIN jobs AS j ON j.job_id = r.job_id
CROSS JOIN lanes AS l ON l.lane_id = j.lane_id
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
LEFT JOIN labels AS g ON ?1 = 'label' AND g.job_id = r.job_id AND g.key = ?10
WHERE r.ended_ms >= ?2 AND r.ended_ms < ?3 AND (?1 <> 'label' OR g.job_id IS NOT NULL)
  AND (?4 = '[]' OR l.queue IN (SELECT value FROM json_each(?4)))
  AND (?5 = '[]' OR l.tenant IN (SELECT value FROM json_each(?5)))
  AND (?6 = '[]' OR s.provider IN (SELECT value FROM json_each(?6)))
  AND (?7 = '[]' OR s.account IN (SELECT value FROM json_each(?7)))
  AND (?8 = '[]' OR s.model IN (SELECT value FROM json_each(?8)))
  AND (?9 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?9) AS f
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b
                          WHERE b.job_id = r.job_id AND b.key = f.value ->> 0 AND b.value = f.value ->> 1)))
GROUP BY 1
ORDER BY CASE ?1 WHEN 'day' THEN strftime('%Y-%m-%d', r.ended_ms / 1000, 'unixepoch') END DESC, total_tokens DESC, 1
LIMIT ?11
