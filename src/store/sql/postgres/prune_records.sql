-- Deletes records. Guard: the caller locked the ended jobs. Index: primary key.
DELETE FROM turn_records WHERE job_id = ANY ($1)
