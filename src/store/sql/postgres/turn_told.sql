-- Something joins a job's transcript from outside. Guard: the row is locked. Index: primary key.
UPDATE turns SET told = 1 WHERE job_id = $1
