-- Lanes, in the order of their keys. Guard: unique key.
INSERT INTO lanes (scope_id, queue, tenant) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
ON CONFLICT (scope_id, queue, tenant) DO NOTHING
