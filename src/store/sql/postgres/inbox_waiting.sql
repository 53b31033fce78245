-- Which of the jobs have a message that was not read by the turn beside them. Guard: the turns are locked.
-- Index: primary key.
SELECT e.job_id
FROM unnest($1::uuid[], $2::bigint[]) AS e (job_id, seq)
WHERE EXISTS (SELECT 1 FROM inbox AS i WHERE i.job_id = e.job_id AND i.seq > e.seq AND i.kind = 'message')
