-- The latest 20 runs of every schedule, newest first, with where their jobs stand. Index: primary keys.
SELECT r.schedule_id, r.nominal_ms, r.fired_ms, r.outcome, r.job_id, r.error, j.state, t.state
FROM schedules AS s
CROSS JOIN schedule_runs AS r ON r.schedule_id = s.schedule_id AND r.nominal_ms IN (
    SELECT x.nominal_ms FROM schedule_runs AS x WHERE x.schedule_id = s.schedule_id ORDER BY x.nominal_ms DESC LIMIT 20
)
LEFT JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN turns AS t ON t.job_id = r.job_id
ORDER BY r.schedule_id, r.nominal_ms DESC
