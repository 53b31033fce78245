-- Lets a queue go on; answers the pause that stood. Index: primary key.
DELETE FROM queues WHERE queue = $1 RETURNING paused_ms, paused_by, pause_reason
