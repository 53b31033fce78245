-- A worker whose lease stands, and goes on to stand until the commit. Guard: neither rescued nor retired meanwhile, both
-- of which lock the row whole. A key lock, that lets renewals pass: a claim may wait for its scopes longer than a lease.
-- Index: unique worker_id.
SELECT worker_no FROM workers
WHERE worker_id = $1 AND coalesce(lapsed_ms, ended_ms) IS NULL AND heartbeat_ms + lease_ms > $2
FOR KEY SHARE
