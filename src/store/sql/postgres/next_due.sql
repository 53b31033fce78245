-- The earliest instant at which something becomes due: a backoff, a hold's resume, a deadline, a lease's lapse, a
-- schedule's firing. Backoffs, resumes and firings that have passed wait for whoever asks next, not for the clock; what is
-- paused waits for neither, but deadlines run. Index: turns_later, turns_deadline.
SELECT least(
    (SELECT due_ms FROM turns WHERE state = 1 AND paused_ms IS NULL AND due_ms > $1 ORDER BY due_ms LIMIT 1),
    (SELECT deadline_ms FROM turns WHERE state < 2 AND deadline_ms IS NOT NULL ORDER BY deadline_ms LIMIT 1),
    (SELECT min(until_ms) FROM holds WHERE ended_ms IS NULL AND until_ms > $1),
    (SELECT min(coalesce(lapsed_ms, heartbeat_ms + lease_ms)) FROM workers WHERE ended_ms IS NULL),
    (SELECT min(next_ms) FROM schedules WHERE next_ms IS NOT NULL AND paused_ms IS NULL AND next_ms > $1)
)
