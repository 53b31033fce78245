-- Scopes with a claimable turn in one of the queues ?1 (empty: any) that are not paused. Index: lanes_active, once a scope.
SELECT s.scope_id
FROM scopes AS s
WHERE EXISTS (
    SELECT 1 FROM lanes AS l INDEXED BY lanes_active
    WHERE l.scope_id = s.scope_id AND l.ready > 0
      AND (?1 = '[]' OR l.queue IN (SELECT value FROM json_each(?1)))
      AND NOT EXISTS (SELECT 1 FROM queues AS q WHERE q.queue = l.queue)
)
