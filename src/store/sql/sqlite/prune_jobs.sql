-- Deletes jobs; what is theirs goes with them. Guard: ended. Index: primary key.
DELETE FROM jobs WHERE job_id IN (SELECT unhex(value) FROM json_each(?1)) AND finished_ms IS NOT NULL
