-- Records of executions, each with its final send. Guard: unique (job_id, fence).
INSERT INTO turn_records (
    job_id, fence, seq, outcome, cut, started_ms, ended_ms, attempts, error, response,
    input_tokens, output_tokens, total_tokens, class, cause, code, http_status, rule, rules_version, decision,
    resume_at_ms, skew_ms, phase, request_id, provider_code, provider_type, finish_reason, provider_model, received_ms,
    send_n, send_permit_ms, send_started_ms, send_first_byte_ms, send_ended_ms, send_outcome, send_http_status,
    send_cause, send_class, send_error, send_wait_ms, send_wait_source,
    send_tests_job, send_tests_fence, send_tests_n, send_tests_resume_ms
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?, ?)
