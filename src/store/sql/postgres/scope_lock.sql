-- An account's scope, locked. Index: unique (provider, account, model).
SELECT scope_id, max_in_flight FROM scopes WHERE provider = $1 AND account = $2 AND model = '' FOR NO KEY UPDATE
