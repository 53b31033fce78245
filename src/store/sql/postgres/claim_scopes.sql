-- Scopes with a claimable turn in one of the queues $1 (empty: any) that are not paused. Index: lanes_active, once a scope.
SELECT s.scope_id
FROM scopes AS s
WHERE EXISTS (
    SELECT 1 FROM lanes AS l
    WHERE l.scope_id = s.scope_id AND l.ready > 0 AND (cardinality($1::text[]) = 0 OR l.queue = ANY ($1))
      AND l.queue <> ALL (ARRAY(SELECT q.queue FROM queues AS q))
)
