-- The scope of an open hold. Index: primary key.
SELECT scope_id FROM holds WHERE hold_id = $1 AND ended_ms IS NULL
