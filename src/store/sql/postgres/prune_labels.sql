-- Deletes labels. Guard: the caller locked the ended jobs. Index: primary key.
DELETE FROM labels WHERE job_id = ANY ($1)
