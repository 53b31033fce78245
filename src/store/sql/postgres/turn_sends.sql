-- The sends of a job in order. Index: primary keys of sends and turn_records.
SELECT fence, n, permit_ms, started_ms, first_byte_ms, ended_ms, outcome, http_status, cause, class, error, wait_ms,
       wait_source, tests_job, tests_fence, tests_n, tests_resume_ms
FROM all_sends WHERE job_id = $1 ORDER BY fence, n
