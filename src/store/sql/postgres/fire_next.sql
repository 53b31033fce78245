-- The schedule's next instant. Guard: the row is locked, and the one before was compared. Index: primary key.
UPDATE schedules SET next_ms = $2 WHERE schedule_id = $1
