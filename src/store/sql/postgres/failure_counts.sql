-- Failures counted by the dimension $1 (cause, class, model, provider, account, http, code, queue, hour), the most frequent
-- first; by hour, in order. What has no cause (a lost worker, a passed deadline) is counted by its code. Ends are compared
-- with their fences (all above 0), so that the index of failures is taken and not that of all ends.
-- Index: turn_records_failed, sends_ended.
WITH failed AS (
    SELECT r.job_id, r.ended_ms, coalesce(r.cause, r.code) AS cause, r.class, r.code, r.http_status
    FROM turn_records AS r
    WHERE r.outcome <> 'completed' AND (r.ended_ms, r.fence) >= ($8, 0) AND (r.ended_ms, r.fence) < ($9, 0)
      AND (cardinality($10::text[]) = 0 OR coalesce(r.cause, r.code) = ANY ($10))
      AND (cardinality($11::text[]) = 0 OR r.class = ANY ($11))
      AND (cardinality($14::text[]) = 0 OR r.code = ANY ($14))
      AND (cardinality($15::bigint[]) = 0 OR r.http_status = ANY ($15))
      AND (cardinality($16::text[]) = 0 OR r.phase = ANY ($16))
      AND (cardinality($17::text[]) = 0 OR r.rule = ANY ($17))
    UNION ALL
    SELECT r.job_id, r.ended_ms, r.cause, r.class, document_word(r.error, 'code'), r.http_status
    FROM sends AS r
    WHERE $2 AND r.ended_ms >= $8 AND r.ended_ms < $9
      AND (cardinality($10::text[]) = 0 OR r.cause = ANY ($10))
      AND (cardinality($11::text[]) = 0 OR r.class = ANY ($11))
      AND (cardinality($14::text[]) = 0 OR document_word(r.error, 'code') = ANY ($14))
      AND (cardinality($15::bigint[]) = 0 OR r.http_status = ANY ($15))
      AND (cardinality($16::text[]) = 0 OR document_word(r.error, 'phase') = ANY ($16))
      AND (cardinality($17::text[]) = 0
           OR (SELECT x.rule FROM reset_evidence AS x WHERE x.job_id = r.job_id AND x.fence = r.fence AND x.n = r.n) = ANY ($17))
)
SELECT coalesce(CASE $1::text WHEN 'cause' THEN d.cause WHEN 'class' THEN d.class WHEN 'model' THEN s.model
                              WHEN 'provider' THEN s.provider WHEN 'account' THEN s.account WHEN 'queue' THEN l.queue
                              WHEN 'code' THEN d.code WHEN 'http' THEN d.http_status::text
                              ELSE to_char(to_timestamp(d.ended_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"')
                END, '') COLLATE "C" AS value,
       count(*) AS failed, count(*) FILTER (WHERE j.state = 'succeeded') AS recovered,
       min(d.ended_ms) AS first_ms, max(d.ended_ms) AS last_ms
FROM failed AS d
JOIN jobs AS j ON j.job_id = d.job_id
JOIN lanes AS l ON l.lane_id = j.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE true
  AND (cardinality($3::text[]) = 0 OR l.queue = ANY ($3)) AND (cardinality($4::text[]) = 0 OR l.tenant = ANY ($4))
  AND (cardinality($5::text[]) = 0 OR s.provider = ANY ($5))
  AND (cardinality($6::text[]) = 0 OR s.account = ANY ($6)) AND (cardinality($7::text[]) = 0 OR s.model = ANY ($7))
  AND NOT EXISTS (
        SELECT 1 FROM unnest($12::text[], $13::text[]) AS f (key, value)
        WHERE NOT EXISTS (SELECT 1 FROM labels AS b WHERE b.job_id = d.job_id AND b.key = f.key AND b.value = f.value))
GROUP BY 1
ORDER BY CASE $1 WHEN 'hour' THEN 0 ELSE -count(*) END, 1
LIMIT $18
