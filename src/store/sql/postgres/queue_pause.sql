-- Pauses a queue. Guard: the first pause stands. Index: primary key.
INSERT INTO queues (queue, paused_ms, paused_by, pause_reason) VALUES ($1, $2, $3, $4)
ON CONFLICT (queue) DO NOTHING
