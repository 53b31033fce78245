-- What joins a transcript, behind what stands there. Guard: the job's turn is locked. Index: primary key.
INSERT INTO inbox (job_id, seq, n, kind, body, at_ms, key)
SELECT $1, $2, (SELECT coalesce(max(n), 0) + 1 FROM inbox WHERE job_id = $1 AND seq = $2), $3, $4, $5, $6
