-- Is there a turn whose time has come? Index: turns_later.
SELECT 1 FROM turns INDEXED BY turns_later WHERE state = 1 AND paused_ms IS NULL AND due_ms <= ?1 LIMIT 1
