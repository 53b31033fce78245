-- A schedule. Guard: unique name.
INSERT INTO schedules (schedule_id, name, cron, zone, spec, catch_up, overlap, next_ms, created_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (name) DO NOTHING
