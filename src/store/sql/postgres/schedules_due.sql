-- Schedules whose next instant has come, the most overdue first. Index: schedules_next.
SELECT schedule_id, name, cron, zone, spec, catch_up, overlap, paused_ms, paused_by, pause_reason, next_ms,
       created_ms
FROM schedules
WHERE next_ms IS NOT NULL AND paused_ms IS NULL AND next_ms <= $1
ORDER BY next_ms
LIMIT $2
