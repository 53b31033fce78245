-- The evidence of a refusal. Guard: primary key; told twice, it is kept once.
INSERT INTO reset_evidence (job_id, fence, n, received_ms, reset_at_ms, resume_at_ms, skew_ms, source_kind, source_name,
                            raw, limit_kind, cause, rule, rules_version, candidates,
                            candidate_kinds, candidate_names, candidate_verdicts, lane_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
        (SELECT j.lane_id FROM jobs AS j WHERE j.job_id = $1))
ON CONFLICT (job_id, fence, n) DO NOTHING
