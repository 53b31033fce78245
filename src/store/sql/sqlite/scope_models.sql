-- The model scopes of an account. Index: none (scopes are few, and this runs at process start).
SELECT scope_id FROM scopes WHERE account_id = ?1 ORDER BY scope_id
