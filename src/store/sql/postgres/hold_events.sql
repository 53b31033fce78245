-- What befell the hold $1, in order. Index: hold_events_hold.
SELECT at_ms, event, until_ms, job_id, "by", reason FROM hold_events WHERE hold_id = $1 ORDER BY event_no
