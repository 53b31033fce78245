-- Deletes what joined transcripts. Guard: the caller locked the ended jobs. Index: primary key.
DELETE FROM inbox WHERE job_id = ANY ($1)
