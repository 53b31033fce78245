-- Deletes records. Guard: the caller chose ended jobs in this transaction. Index: unique (job_id, fence).
DELETE FROM turn_records WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
