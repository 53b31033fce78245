-- Paused queues. Index: none (they are few).
SELECT queue, paused_ms, paused_by, pause_reason FROM queues
