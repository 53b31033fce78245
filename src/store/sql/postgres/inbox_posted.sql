-- What was posted to a job under a key, in order. Index: inbox_key.
SELECT seq, body FROM inbox WHERE job_id = $1 AND key = $2 AND key IS NOT NULL ORDER BY seq, n
