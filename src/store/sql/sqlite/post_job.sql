-- Where a job stands whose transcript something is to join, and whether something keeps it from its turn: a
-- continuation, or messages that wait for the next one. Index: primary keys.
SELECT j.state, t.state, t.seq, t.cancel_ms,
       EXISTS (SELECT 1 FROM inbox AS i WHERE i.job_id = t.job_id AND i.seq >= t.seq
                                         AND (i.seq > t.seq OR i.kind = 'continuation')) AS behind
FROM jobs AS j
LEFT JOIN turns AS t ON t.job_id = j.job_id
WHERE j.job_id = ?1
