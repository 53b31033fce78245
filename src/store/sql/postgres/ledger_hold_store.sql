-- Writes a hold back. Guard: one open hold a scope (holds_open); its scope is locked.
INSERT INTO holds (hold_id, scope_id, cause, kind, opened_ms, dated_no, until_ms, source, raw, refusal_job, refusal_fence,
                   refusal_n, extended, barren, probe_worker, probe_job, probe_fence, probe_since_ms, ended_ms, "end")
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
ON CONFLICT (hold_id) DO UPDATE SET
    cause = excluded.cause, kind = excluded.kind, dated_no = excluded.dated_no, until_ms = excluded.until_ms,
    source = excluded.source, raw = excluded.raw, refusal_job = excluded.refusal_job,
    refusal_fence = excluded.refusal_fence, refusal_n = excluded.refusal_n, extended = excluded.extended,
    barren = excluded.barren, probe_worker = excluded.probe_worker, probe_job = excluded.probe_job,
    probe_fence = excluded.probe_fence, probe_since_ms = excluded.probe_since_ms, ended_ms = excluded.ended_ms,
    "end" = excluded."end"
