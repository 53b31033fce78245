-- The schedule of a name. Index: unique name.
SELECT schedule_id, cron, zone, spec, catch_up, overlap FROM schedules WHERE name = $1
