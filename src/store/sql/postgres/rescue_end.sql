-- Ends lapsed workers whose turns were all taken. Guard: the rows are locked. Index: primary key, turns_running.
UPDATE workers SET ended_ms = $2
WHERE worker_no = ANY ($1) AND lapsed_ms IS NOT NULL AND ended_ms IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.state = 2 AND turns.worker_no = workers.worker_no)
