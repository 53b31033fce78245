-- Deletes replaced sends. Index: primary key.
DELETE FROM sends WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
