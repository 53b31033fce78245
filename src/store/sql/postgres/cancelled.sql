-- Turns of a worker that somebody asked to cancel. Index: unique worker_id, turns_running.
SELECT t.job_id, t.fence
FROM workers AS w JOIN turns AS t ON t.worker_no = w.worker_no
WHERE w.worker_id = $1 AND t.state = 2 AND t.cancel_ms IS NOT NULL
