-- The open holds of scopes. Index: holds_open.
SELECT h.hold_id, h.scope_id, h.cause, h.kind, h.opened_ms, h.dated_no, h.until_ms, h.source, h.raw, h.refusal_job,
       h.refusal_fence, h.refusal_n, h.extended, h.barren, h.probe_worker, h.probe_job, h.probe_fence, h.probe_since_ms
FROM holds AS h
WHERE h.scope_id = ANY ($1) AND h.ended_ms IS NULL
