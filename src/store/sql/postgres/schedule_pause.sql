-- Pauses a schedule. Guard: the first pause stands. Index: primary key.
UPDATE schedules
SET paused_ms = coalesce(paused_ms, $2),
    paused_by = CASE WHEN paused_ms IS NULL THEN $3 ELSE paused_by END,
    pause_reason = CASE WHEN paused_ms IS NULL THEN $4 ELSE pause_reason END
WHERE schedule_id = $1
