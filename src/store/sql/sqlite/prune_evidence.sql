-- Deletes evidence. Index: primary key.
DELETE FROM reset_evidence WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
