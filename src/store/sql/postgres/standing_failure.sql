-- The last record of the job $1 that failed or was put back. Index: primary key, walked backwards.
SELECT ended_ms, outcome, class, cause, code, http_status FROM turn_records
WHERE job_id = $1 AND outcome IN ('failed', 'deferred', 'requeued', 'lost')
ORDER BY fence DESC LIMIT 1
