-- Final results. Guard: a final job never changes. Index: primary key.
WITH e (job_id, state, result, error, finished_ms, ended_no) AS (
    VALUES (?, ?, ?, ?, ?, ?)
)
UPDATE jobs SET state = e.state, result = e.result, error = e.error, finished_ms = e.finished_ms, ended_no = e.ended_no
FROM e
WHERE jobs.job_id = e.job_id AND jobs.state IS NULL
