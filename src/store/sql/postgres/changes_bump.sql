-- Tells those that cannot listen. Guard: none, it is a hint. Index: primary key.
UPDATE counters SET value = value + 1 WHERE name = 'changes'
