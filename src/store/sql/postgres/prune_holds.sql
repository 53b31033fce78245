-- Deletes holds that ended before $1, with their events. Index: holds_opened (opened before it ended).
DELETE FROM holds WHERE hold_id = ANY (ARRAY(
    SELECT hold_id FROM holds WHERE opened_ms < $1 AND ended_ms < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
))
