-- Adds to counters that only grow. Guard: whoever counts ends has locked `ended` before. Index: primary key.
INSERT INTO counters (name, value) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value
