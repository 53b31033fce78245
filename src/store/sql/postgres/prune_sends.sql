-- Deletes replaced sends. Guard: the caller locked the ended jobs. Index: primary key.
DELETE FROM sends WHERE job_id = ANY ($1)
