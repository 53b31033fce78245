-- Of each scope in $1 the $3 active lanes that were served longest ago, in one of the queues $2 (empty: any) that are not
-- paused. Index: lanes_active, primary keys.
SELECT l.scope_id, l.lane_id, l.ready, l.served, l.queue, l.tenant, s.provider, s.account, s.model
FROM unnest($1::bigint[]) AS e (scope_id)
JOIN scopes AS s ON s.scope_id = e.scope_id
CROSS JOIN LATERAL (
    SELECT x.scope_id, x.lane_id, x.ready, x.served, x.queue, x.tenant FROM lanes AS x
    WHERE x.scope_id = e.scope_id AND x.ready > 0 AND (cardinality($2::text[]) = 0 OR x.queue = ANY ($2))
      AND x.queue <> ALL (ARRAY(SELECT q.queue FROM queues AS q))
    ORDER BY x.served, x.lane_id LIMIT $3
) AS l
