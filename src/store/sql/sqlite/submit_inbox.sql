-- What accepted jobs take over of other transcripts. Guard: primary key.
INSERT INTO inbox (job_id, seq, n, kind, body, at_ms)
VALUES (?, ?, ?, ?, ?, ?)
