-- Notes that a job's records are gone. Index: primary key.
UPDATE jobs SET pruned = 1 WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
