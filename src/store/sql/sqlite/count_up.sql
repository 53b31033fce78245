-- Adds to counters that only grow. Guard: none. Index: primary key.
INSERT INTO counters (name, value) SELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE true
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
