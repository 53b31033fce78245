-- Scopes and their accounts as they stand. Index: primary key.
SELECT s.scope_id, s.account_id, s.max_in_flight, s.flow_limit, s.flow_threshold,
       s.flow_answered, s.in_flight, s.barren
FROM scopes AS s
WHERE s.scope_id = ANY (ARRAY(
    SELECT e.scope_id FROM unnest($1::bigint[]) AS e (scope_id)
    UNION
    SELECT x.account_id FROM unnest($1::bigint[]) AS e (scope_id) JOIN scopes AS x ON x.scope_id = e.scope_id
    WHERE x.account_id IS NOT NULL
))
