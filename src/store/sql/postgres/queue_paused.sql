-- The pause of a queue. Index: primary key.
SELECT paused_ms, paused_by, pause_reason FROM queues WHERE queue = $1
