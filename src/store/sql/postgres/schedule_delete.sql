-- Removes a schedule with its runs; its jobs stay. Index: primary key.
DELETE FROM schedules WHERE schedule_id = $1
