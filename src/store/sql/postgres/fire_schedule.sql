-- What a firing is compared with, locked: of several who fire an instant one does. Index: primary key.
SELECT next_ms, paused_ms, overlap FROM schedules WHERE schedule_id = $1 FOR UPDATE
