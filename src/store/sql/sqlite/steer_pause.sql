-- Pauses turns, or lets them go on (nulls). Guard: the caller chose them in this transaction. Index: primary key.
UPDATE turns SET paused_ms = ?2, paused_by = ?3, pause_reason = ?4
WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
