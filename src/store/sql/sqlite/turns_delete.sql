-- Deletes the turns of ended jobs. Index: primary key.
DELETE FROM turns WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
