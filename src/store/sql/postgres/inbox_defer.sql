-- Moves messages behind the continuation that comes before them. Guard: the caller ends the turn before seq in this
-- transaction, so that nothing stands behind seq yet. Index: primary key.
UPDATE inbox SET seq = inbox.seq + 1
FROM unnest($1::uuid[], $2::bigint[]) AS e (job_id, seq)
WHERE inbox.job_id = e.job_id AND inbox.seq = e.seq AND inbox.kind = 'message'
