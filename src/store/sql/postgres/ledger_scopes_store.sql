-- Writes scopes back. Guard: CHECK (in_flight >= 0); the rows are locked. Index: primary key.
UPDATE scopes
SET in_flight = e.in_flight, barren = e.barren, flow_limit = e.flow_limit, flow_threshold = e.flow_threshold,
    flow_answered = e.flow_answered
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS e (scope_id, in_flight, barren, flow_limit, flow_threshold, flow_answered)
WHERE scopes.scope_id = e.scope_id
