-- Accepts jobs. Guard: primary key, jobs_key, jobs_retry_of.
INSERT INTO jobs (job_id, lane_id, entry, key_tenant, key, digest, spec, priority, created_ms, deadline_ms, retry_of,
                  schedule_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
