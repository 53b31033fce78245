-- Deletes all but the last 100 runs of a schedule. Index: primary key.
DELETE FROM schedule_runs
WHERE schedule_id = $1 AND nominal_ms <= (
    SELECT x.nominal_ms FROM schedule_runs AS x WHERE x.schedule_id = $1 ORDER BY x.nominal_ms DESC LIMIT 1 OFFSET 100
)
