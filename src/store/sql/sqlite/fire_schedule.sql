-- What a firing is compared with. Index: primary key.
SELECT next_ms, paused_ms, overlap FROM schedules WHERE schedule_id = ?1
