-- At most $2 turns in the hands of the workers $1. Index: turns_running.
SELECT t.job_id, t.fence FROM turns AS t WHERE t.worker_no = ANY ($1) AND t.state = 2 LIMIT $2
