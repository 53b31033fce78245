-- The scopes $2 and those of the turns of the jobs $1, with their accounts, locked in the order of their numbers.
-- Index: primary keys.
SELECT s.scope_id, s.account_id, s.max_in_flight, s.flow_limit, s.flow_threshold,
       s.flow_answered, s.in_flight, s.barren
FROM scopes AS s
WHERE s.scope_id = ANY (ARRAY(
    WITH wanted AS MATERIALIZED (
        SELECT l.scope_id FROM turns AS t JOIN lanes AS l ON l.lane_id = t.lane_id WHERE t.job_id = ANY ($1::uuid[])
        UNION
        SELECT e.scope_id FROM unnest($2::bigint[]) AS e (scope_id)
    )
    SELECT w.scope_id FROM wanted AS w
    UNION
    SELECT x.account_id FROM wanted AS w JOIN scopes AS x ON x.scope_id = w.scope_id WHERE x.account_id IS NOT NULL
))
ORDER BY s.scope_id
FOR NO KEY UPDATE
