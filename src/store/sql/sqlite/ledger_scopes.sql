-- Scopes and their accounts. Index: primary key.
WITH wanted (scope_id) AS (
    SELECT value FROM json_each(?1)
    UNION
    SELECT s.account_id FROM json_each(?1) AS e CROSS JOIN scopes AS s ON s.scope_id = e.value
    WHERE s.account_id IS NOT NULL
)
SELECT s.scope_id, s.account_id, s.max_in_flight, s.flow_limit, s.flow_threshold,
       s.flow_answered, s.in_flight, s.barren
FROM wanted AS w CROSS JOIN scopes AS s ON s.scope_id = w.scope_id
