-- Records of executions, each with its final send. Guard: primary key.
INSERT INTO turn_records (
    job_id, fence, seq, outcome, cut, started_ms, ended_ms, attempts, error, response,
    input_tokens, output_tokens, total_tokens, class, cause, code, http_status, rule, rules_version, decision,
    resume_at_ms, skew_ms, phase, request_id, provider_code, provider_type, finish_reason, provider_model, received_ms,
    send_n, send_permit_ms, send_started_ms, send_first_byte_ms, send_ended_ms, send_outcome, send_http_status,
    send_cause, send_class, send_error, send_wait_ms, send_wait_source,
    send_tests_job, send_tests_fence, send_tests_n, send_tests_resume_ms
)
SELECT * FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::text[],
    $17::bigint[], $18::text[], $19::bigint[], $20::text[], $21::bigint[], $22::bigint[], $23::text[],
    $24::text[], $25::text[], $26::text[], $27::text[], $28::text[], $29::bigint[], $30::bigint[],
    $31::bigint[], $32::bigint[], $33::bigint[], $34::bigint[], $35::text[], $36::bigint[], $37::text[],
    $38::text[], $39::text[], $40::bigint[], $41::text[], $42::uuid[], $43::bigint[], $44::bigint[],
    $45::bigint[]
)
