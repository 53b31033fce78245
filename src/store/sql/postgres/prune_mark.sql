-- Notes that a job's records are gone. Guard: the rows are locked. Index: primary key.
UPDATE jobs SET pruned = 1 WHERE job_id = ANY ($1)
