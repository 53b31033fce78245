-- What befell holds.
INSERT INTO hold_events (hold_id, at_ms, event, until_ms, barren, job_id, fence, n, "by", reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
