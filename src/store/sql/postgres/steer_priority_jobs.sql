-- Gives jobs another priority. Guard: live; their turns are locked. Index: primary key.
UPDATE jobs SET priority = $2::bigint WHERE job_id = ANY ($1) AND state IS NULL
