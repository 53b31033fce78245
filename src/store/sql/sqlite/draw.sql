-- Draws ?2 numbers of the counter ?1; answers the last. Guard: inside the writer's transaction. Index: primary key.
UPDATE counters SET value = value + ?2 WHERE name = ?1 RETURNING value
