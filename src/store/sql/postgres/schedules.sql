-- Every schedule, by name. Index: none (schedules are few).
SELECT schedule_id, name, cron, zone, spec, catch_up, overlap, paused_ms, paused_by, pause_reason, next_ms,
       created_ms
FROM schedules
ORDER BY name
