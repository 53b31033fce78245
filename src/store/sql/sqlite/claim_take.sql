-- The first ?2 claimable turns of each lane in ?1, with what their worker needs; those past their deadline at ?3 are left
-- to be ended, with the failure they met last. Index: turns_ready, primary keys.
SELECT t.job_id, t.lane_id, t.rank_ms, t.seq, t.executions, t.deferrals, t.repairs, t.waiting_since_ms,
       j.entry, j.spec, j.created_ms, j.deadline_ms, t.told
FROM json_each(?1) AS g
CROSS JOIN turns AS t ON t.job_id IN (
    SELECT x.job_id FROM turns AS x INDEXED BY turns_ready
    WHERE x.lane_id = g.value AND x.state = 0 AND x.paused_ms IS NULL AND (x.deadline_ms IS NULL OR x.deadline_ms > ?3)
    ORDER BY x.rank_ms, x.job_id LIMIT ?2
)
CROSS JOIN jobs AS j ON j.job_id = t.job_id
