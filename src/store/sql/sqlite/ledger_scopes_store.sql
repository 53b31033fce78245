-- Writes scopes back: [[scope_id, in_flight, barren, flow_limit, flow_threshold, flow_answered], …].
-- Guard: CHECK (in_flight >= 0). Index: primary key.
UPDATE scopes
SET in_flight = e.value ->> 1, barren = e.value ->> 2, flow_limit = e.value ->> 3, flow_threshold = e.value ->> 4,
    flow_answered = e.value ->> 5
FROM json_each(?1) AS e
WHERE scopes.scope_id = e.value ->> 0
