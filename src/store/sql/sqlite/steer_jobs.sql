-- Where the jobs ?1 stand. Index: primary keys.
SELECT e.key, j.state, t.state, t.lane_id, t.paused_ms, t.priority, t.executions
FROM json_each(?1) AS e
CROSS JOIN jobs AS j ON j.job_id = unhex(e.value)
LEFT JOIN turns AS t ON t.job_id = j.job_id
