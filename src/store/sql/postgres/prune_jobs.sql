-- Deletes jobs; what is theirs was deleted before. Guard: ended. Index: primary key.
DELETE FROM jobs WHERE job_id = ANY ($1) AND finished_ms IS NOT NULL
