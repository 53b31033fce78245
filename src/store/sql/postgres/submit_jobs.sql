-- Accepts jobs; answers those that are new. Guard: primary key, jobs_key; the rest is told by submit_again.
INSERT INTO jobs (job_id, lane_id, entry, key_tenant, key, digest, spec, priority, created_ms, deadline_ms, retry_of,
                  schedule_id)
SELECT job_id, lane_id, entry, key_tenant, key, digest, spec, priority, created_ms, deadline_ms, retry_of, schedule_id
FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::uuid[], $12::uuid[])
    AS e (job_id, lane_id, entry, key_tenant, key, digest, spec, priority, created_ms, deadline_ms, retry_of,
          schedule_id)
ON CONFLICT DO NOTHING
RETURNING job_id
