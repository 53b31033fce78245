-- Turns waiting in hand that wish to send by $1, longest waiting first. Index: turns_parked.
SELECT t.job_id, t.fence, l.scope_id, s.account_id
FROM turns AS t JOIN lanes AS l ON l.lane_id = t.lane_id JOIN scopes AS s ON s.scope_id = l.scope_id
WHERE t.parked_ms IS NOT NULL AND t.wait_until_ms <= $1
ORDER BY t.parked_ms, t.job_id
