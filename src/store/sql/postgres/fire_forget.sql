-- Forgets the instants after $2 that were passed over without a job. Guard: the schedule's row is locked, and its next
-- instant was compared. Index: primary key.
DELETE FROM schedule_runs WHERE schedule_id = $1 AND nominal_ms > $2 AND job_id IS NULL
