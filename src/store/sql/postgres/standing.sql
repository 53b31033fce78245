-- Where the live job $1 stands: its turn, its lane, its scope and account, and the turns before it, in its lane and in the
-- scope $2 that holds it (null: none does), counted to $3. Index: primary keys, turns_ready, lanes_active, turns_running.
SELECT t.state, t.fence, t.claimed_ms, t.cancel_ms, l.minute, l.claims, l.claims_before,
       s.in_flight, s.flow_limit, s.max_in_flight,
       (SELECT min(x.claimed_ms) FROM turns AS x JOIN lanes AS y ON y.lane_id = x.lane_id
        WHERE x.state = 2 AND x.in_flight = 1 AND y.scope_id = s.scope_id) AS oldest_ms,
       a.in_flight, a.flow_limit, a.max_in_flight,
       (SELECT min(x.claimed_ms) FROM turns AS x JOIN lanes AS y ON y.lane_id = x.lane_id
        JOIN scopes AS z ON z.scope_id = y.scope_id
        WHERE x.state = 2 AND x.in_flight = 1 AND a.scope_id IN (z.scope_id, z.account_id)) AS account_oldest_ms,
       (SELECT count(*) FROM (
            SELECT 1 FROM turns AS x
            WHERE x.lane_id = t.lane_id AND x.state = 0 AND x.paused_ms IS NULL
              AND (x.rank_ms, x.job_id) < (t.rank_ms, t.job_id)
            LIMIT $3) AS d) AS ahead,
       (SELECT count(*) FROM (
            SELECT 1 FROM scopes AS z
            CROSS JOIN LATERAL (SELECT y.lane_id, y.queue FROM lanes AS y
                                WHERE y.scope_id = z.scope_id AND y.ready > 0 OFFSET 0) AS y
            JOIN turns AS x ON x.lane_id = y.lane_id AND x.state = 0 AND x.paused_ms IS NULL
            WHERE $2::bigint IN (z.scope_id, z.account_id) AND (x.rank_ms, x.job_id) < (t.rank_ms, t.job_id)
              AND y.queue NOT IN (SELECT queue FROM queues)
            LIMIT $3) AS d) AS ahead_in_scope
FROM turns AS t
JOIN lanes AS l ON l.lane_id = t.lane_id
JOIN scopes AS s ON s.scope_id = l.scope_id
JOIN scopes AS a ON a.scope_id = coalesce(s.account_id, s.scope_id)
WHERE t.job_id = $1
