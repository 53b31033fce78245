-- What came of a nominal instant. Index: primary keys.
SELECT r.schedule_id, r.nominal_ms, r.fired_ms, r.outcome, r.job_id, r.error, j.state, t.state AS turn
FROM schedule_runs AS r
LEFT JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN turns AS t ON t.job_id = r.job_id
WHERE r.schedule_id = $1 AND r.nominal_ms = $2
