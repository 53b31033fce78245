-- Moves messages behind the continuation that comes before them: [[job, seq], …]. Guard: the caller ends the turn before
-- seq in this transaction, so that nothing stands behind seq yet. Index: primary key.
UPDATE inbox SET seq = inbox.seq + 1
FROM (SELECT unhex(value ->> 0) AS job_id, value ->> 1 AS seq FROM json_each(?1)) AS e
WHERE inbox.job_id = e.job_id AND inbox.seq = e.seq AND inbox.kind = 'message'
