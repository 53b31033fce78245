-- The turn of a job whose transcript something is to join, locked. Index: primary key.
SELECT state, seq, cancel_ms FROM turns WHERE job_id = $1 FOR UPDATE
