-- What else joins a job's transcript, in order. Index: primary key.
SELECT seq, kind, body, at_ms FROM inbox WHERE job_id = $1 ORDER BY seq, n
