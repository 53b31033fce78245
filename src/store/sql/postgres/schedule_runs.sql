-- The latest 20 runs of every schedule, newest first, with where their jobs stand. Index: primary keys.
SELECT r.schedule_id, r.nominal_ms, r.fired_ms, r.outcome, r.job_id, r.error, j.state, t.state AS turn
FROM schedules AS s
CROSS JOIN LATERAL (
    SELECT x.schedule_id, x.nominal_ms, x.fired_ms, x.outcome, x.job_id, x.error FROM schedule_runs AS x
    WHERE x.schedule_id = s.schedule_id ORDER BY x.nominal_ms DESC LIMIT 20
) AS r
LEFT JOIN jobs AS j ON j.job_id = r.job_id
LEFT JOIN turns AS t ON t.job_id = r.job_id
ORDER BY r.schedule_id, r.nominal_ms DESC
