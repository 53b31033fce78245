-- Deletes evidence. Guard: the caller locked the ended jobs. Index: primary key.
DELETE FROM reset_evidence WHERE job_id = ANY ($1)
