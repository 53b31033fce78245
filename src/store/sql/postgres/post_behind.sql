-- Whether something keeps messages from the turn $2: a continuation, or messages that wait for the next one. Guard: the
-- turn is locked. Index: primary key.
SELECT EXISTS (SELECT 1 FROM inbox AS i WHERE i.job_id = $1 AND i.seq >= $2 AND (i.seq > $2 OR i.kind = 'continuation'))
