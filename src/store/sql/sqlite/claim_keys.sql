-- The keys of lanes. Index: primary keys.
SELECT l.lane_id, l.queue, l.tenant, s.provider, s.account, s.model, s.scope_id
FROM json_each(?1) AS e
CROSS JOIN lanes AS l ON l.lane_id = e.value
CROSS JOIN scopes AS s ON s.scope_id = l.scope_id
