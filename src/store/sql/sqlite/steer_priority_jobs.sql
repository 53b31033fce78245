-- Gives jobs another priority. Guard: live. Index: primary key.
UPDATE jobs SET priority = ?2 WHERE job_id IN (SELECT unhex(value) FROM json_each(?1)) AND state IS NULL
