-- Lanes by their keys. Index: unique (scope_id, queue, tenant).
SELECT l.lane_id, e.place
FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS e (scope_id, queue, tenant, place)
JOIN lanes AS l ON l.scope_id = e.scope_id AND l.queue = e.queue AND l.tenant = e.tenant
