-- Where a job stands whose transcript something is to join, and whether its turn goes on from a cut. Index: primary keys.
SELECT j.state, t.state, t.seq, t.cancel_ms,
       EXISTS (SELECT 1 FROM inbox AS i WHERE i.job_id = t.job_id AND i.seq = t.seq AND i.kind = 'continuation')
FROM jobs AS j
LEFT JOIN turns AS t ON t.job_id = j.job_id
WHERE j.job_id = ?1
