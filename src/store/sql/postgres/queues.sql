-- Queues with their counts by kind; $1 since when ends count (those of the latest $2 ends), $3 how many turns of each lane
-- are looked at for the oldest. Index: lanes_active, turns_ready, turns_running, turns_later, turns_paused, jobs_kept.
WITH held AS MATERIALIZED (
    SELECT DISTINCT s.scope_id FROM holds AS h JOIN scopes AS s ON s.scope_id = h.scope_id OR s.account_id = h.scope_id
    WHERE h.ended_ms IS NULL
), counted (lane_id, kind, n) AS MATERIALIZED (
    SELECT lane_id, CASE WHEN scope_id IN (SELECT scope_id FROM held) THEN 'deferred' ELSE 'ready' END, ready
    FROM lanes WHERE ready > 0
    UNION ALL
    SELECT lane_id, 'running', count(*) FROM turns WHERE state = 2 GROUP BY lane_id
    UNION ALL
    SELECT lane_id, 'later', count(*) FROM turns WHERE state = 1 AND paused_ms IS NULL GROUP BY lane_id
    UNION ALL
    SELECT lane_id, 'paused', count(*) FROM turns WHERE paused_ms IS NOT NULL GROUP BY lane_id
    UNION ALL
    SELECT d.lane_id, d.state, count(*)
    FROM (SELECT lane_id, state FROM jobs WHERE pruned = 0 AND finished_ms IS NOT NULL AND finished_ms >= $1
          ORDER BY finished_ms DESC LIMIT $2) AS d
    GROUP BY d.lane_id, d.state
)
SELECT l.queue, d.kind, sum(d.n)::bigint AS n, min(o.ready_ms) AS oldest_ms
FROM counted AS d
JOIN lanes AS l ON l.lane_id = d.lane_id
LEFT JOIN LATERAL (
    SELECT min(y.rank_ms + 60000 * y.priority) AS ready_ms
    FROM (SELECT x.rank_ms, x.priority FROM turns AS x
          WHERE d.kind IN ('ready', 'deferred') AND x.lane_id = d.lane_id AND x.state = 0 AND x.paused_ms IS NULL
          ORDER BY x.rank_ms, x.job_id LIMIT $3) AS y
) AS o ON true
GROUP BY l.queue, d.kind
