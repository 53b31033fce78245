-- A scope, with its controlled number at its start. Guard: unique key.
INSERT INTO scopes (provider, account, model, account_id, flow_limit) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (provider, account, model) DO NOTHING
