-- Deletes the turns of jobs that end. Guard: the rows are locked. Index: primary key.
DELETE FROM turns WHERE job_id = ANY ($1)
