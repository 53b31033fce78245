-- Counts due turns to their lanes, before claim_promote makes them claimable: the same rows, in the same order.
-- Index: turns_later, primary key.
UPDATE lanes SET ready = lanes.ready + d.n
FROM (
    SELECT lane_id, count(*) AS n
    FROM (SELECT lane_id FROM turns INDEXED BY turns_later WHERE state = 1 AND paused_ms IS NULL AND due_ms <= ?1
          ORDER BY due_ms, job_id LIMIT ?2)
    GROUP BY lane_id
) AS d
WHERE lanes.lane_id = d.lane_id
