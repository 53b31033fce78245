-- The schedule's next instant. Guard: the caller compared the one before in this transaction. Index: primary key.
UPDATE schedules SET next_ms = ?2 WHERE schedule_id = ?1
