-- States what is configured of a scope. Guard: the row is locked. Index: primary key.
UPDATE scopes SET max_in_flight = $2, flow_limit = $3, flow_threshold = $4, flow_answered = $5 WHERE scope_id = $1
