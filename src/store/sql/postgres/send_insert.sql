-- A replaced send, at receipt. Guard: primary key; told twice, it is kept once.
INSERT INTO sends (job_id, fence, n, seq, permit_ms, started_ms, first_byte_ms, ended_ms, outcome, http_status, cause,
                   class, error, wait_ms, wait_source, tests_job, tests_fence, tests_n, tests_resume_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
ON CONFLICT (job_id, fence, n) DO NOTHING
