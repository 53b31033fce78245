-- What came of a nominal instant. Guard: primary key.
INSERT INTO schedule_runs (schedule_id, nominal_ms, fired_ms, outcome, job_id, error) VALUES ($1, $2, $3, $4, $5, $6)
