-- The records of a job in order. Index: primary key.
SELECT fence, seq, outcome, cut, started_ms, ended_ms, attempts, error, response, input_tokens, output_tokens,
       total_tokens, class, cause, code, http_status, rule, rules_version, decision, resume_at_ms, skew_ms, phase,
       request_id, provider_code, provider_type, finish_reason, provider_model, received_ms
FROM turn_records WHERE job_id = $1 ORDER BY fence
