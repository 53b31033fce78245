-- Final results. Guard: a final job never changes. Index: primary key.
UPDATE jobs SET state = e.state, result = e.result, error = e.error, finished_ms = e.finished_ms, ended_no = e.ended_no
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    AS e (job_id, state, result, error, finished_ms, ended_no)
WHERE jobs.job_id = e.job_id AND jobs.state IS NULL
