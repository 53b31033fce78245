-- Workers to be rescued from: lapsed, or to be so. Index: workers_there.
SELECT worker_no FROM workers INDEXED BY workers_there
WHERE ended_ms IS NULL AND (lapsed_ms IS NOT NULL OR heartbeat_ms + lease_ms <= ?1)
ORDER BY worker_no
