-- Which of the jobs [[job, seq], …] have a message that was not read by the turn seq. Index: primary key.
SELECT e.key
FROM json_each(?1) AS e
WHERE EXISTS (SELECT 1 FROM inbox AS i
              WHERE i.job_id = unhex(e.value ->> 0) AND i.seq > e.value ->> 1 AND i.kind = 'message')
