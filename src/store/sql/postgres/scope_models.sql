-- The model scopes of accounts. Index: none (scopes are few, and this runs at process start).
SELECT scope_id FROM scopes WHERE account_id = ANY ($1) ORDER BY scope_id
