-- The scope of a key. Index: unique (provider, account, model).
SELECT scope_id FROM scopes WHERE provider = $1 AND account = $2 AND model = $3
