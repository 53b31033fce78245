-- The evidence of a job's refusals in order. Index: primary key.
SELECT fence, n, received_ms, reset_at_ms, resume_at_ms, skew_ms, source_kind, source_name, raw, limit_kind, cause,
       rule, rules_version, candidates
FROM reset_evidence WHERE job_id = $1 ORDER BY fence, n
