-- Makes due turns claimable. Guard: state. Index: turns_later, primary key.
UPDATE turns SET state = 0, due_ms = NULL
WHERE job_id IN (
    SELECT job_id FROM turns INDEXED BY turns_later WHERE state = 1 AND paused_ms IS NULL AND due_ms <= ?1
    ORDER BY due_ms, job_id LIMIT ?2
)
