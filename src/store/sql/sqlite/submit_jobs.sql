-- Accepts jobs. Guard: primary key, jobs_key.
INSERT INTO jobs (job_id, lane_id, entry, key_tenant, key, digest, spec, priority, created_ms, deadline_ms, retry_of)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
