-- Draws $1 places in the order of endings; answers the last. Guard: the row is locked until the commit, so that a lower
-- place never becomes visible after a higher one. Index: primary key.
UPDATE counters SET value = value + $1 WHERE name = 'ended' RETURNING value
