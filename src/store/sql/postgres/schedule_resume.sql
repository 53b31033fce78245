-- Lets a schedule go on from $2. Guard: one that is not paused keeps its next instant. Index: primary key.
UPDATE schedules
SET next_ms = CASE WHEN paused_ms IS NULL THEN next_ms ELSE $2 END,
    paused_ms = NULL, paused_by = NULL, pause_reason = NULL
WHERE schedule_id = $1
