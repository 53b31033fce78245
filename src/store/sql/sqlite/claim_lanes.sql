-- Of each scope in ?1 the ?3 active lanes that were served longest ago, in one of the queues ?2 (empty: any)
-- that are not paused. Index: lanes_active, primary keys.
SELECT l.scope_id, l.lane_id, l.ready, l.served
FROM json_each(?1) AS e
CROSS JOIN lanes AS l ON l.lane_id IN (
    SELECT x.lane_id FROM lanes AS x INDEXED BY lanes_active
    WHERE x.scope_id = e.value AND x.ready > 0
      AND (?2 = '[]' OR x.queue IN (SELECT value FROM json_each(?2)))
      AND NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.queue = x.queue)
    ORDER BY x.served, x.lane_id LIMIT ?3
)
