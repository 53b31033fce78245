-- Lapsed workers, or those that are to be so; one may not come back while its turns are being taken. Guard: the rows are
-- locked, and those that somebody is at (renewing, claiming, rescuing) are left. Index: none (workers are few).
WITH lapsed AS MATERIALIZED (
    SELECT worker_no FROM workers
    WHERE ended_ms IS NULL AND (lapsed_ms IS NOT NULL OR heartbeat_ms + lease_ms <= $1)
    ORDER BY worker_no FOR UPDATE SKIP LOCKED
)
UPDATE workers SET lapsed_ms = coalesce(workers.lapsed_ms, $1)
FROM lapsed WHERE workers.worker_no = lapsed.worker_no RETURNING workers.worker_no
