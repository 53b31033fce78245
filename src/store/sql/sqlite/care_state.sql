-- Workers alive and lapsed, turns in the hand of neither, turns that wait, the newest instant known. Indices: turns_running,
-- turns_ready, turns_later, the jobs' key. The walks of turns are counted to 10,000.
SELECT (SELECT count(*) FROM workers AS w WHERE w.ended_ms IS NULL AND w.heartbeat_ms + w.lease_ms > ?1),
       (SELECT count(*) FROM workers AS w WHERE w.ended_ms IS NULL AND w.heartbeat_ms + w.lease_ms <= ?1),
       (SELECT count(*) FROM (
            SELECT 1 FROM turns AS t
            WHERE t.state = 2 AND t.worker_no NOT IN (
                SELECT w.worker_no FROM workers AS w WHERE w.ended_ms IS NULL AND w.heartbeat_ms + w.lease_ms > ?1)
            LIMIT 10000)),
       (SELECT count(*) FROM (SELECT 1 FROM turns AS t WHERE t.state < 2 LIMIT 10000)),
       max((SELECT max(w.heartbeat_ms) FROM workers AS w),
           (SELECT j.created_ms FROM jobs AS j ORDER BY j.job_id DESC LIMIT 1))
