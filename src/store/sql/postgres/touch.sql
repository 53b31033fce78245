-- A write of no consequence. Index: primary key.
UPDATE counters SET value = value + 1 WHERE name = 'touched'
