//! What no database may ever say, whatever happened to it.

/// Each a query, in the SQL that every database understands, whose rows are contradictions.
pub const CONTRADICTIONS: &[&str] = &[
    "SELECT 'lane ' || l.lane_id || ' says ' || l.ready || ' ready' FROM lanes AS l
     WHERE l.ready <> (SELECT count(*) FROM turns AS t WHERE t.lane_id = l.lane_id AND t.state = 0
                      AND t.paused_ms IS NULL)",
    "SELECT 'scope ' || s.model || ' says ' || s.in_flight || ' in flight' FROM scopes AS s
     WHERE s.in_flight <> (SELECT count(*) FROM turns AS t JOIN lanes AS l USING (lane_id) JOIN scopes AS x USING (scope_id)
                           WHERE t.in_flight = 1 AND (x.scope_id = s.scope_id OR x.account_id = s.scope_id))",
    "SELECT 'counter ' || c.name || ' says ' || c.value FROM counters AS c
     WHERE c.name IN ('succeeded', 'failed', 'cancelled')
       AND c.value < (SELECT count(*) FROM jobs AS j WHERE j.state = c.name)",
    "SELECT 'a live job without a turn' FROM jobs AS j
     WHERE j.state IS NULL AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.job_id = j.job_id)",
    "SELECT 'a turn of an ended job' FROM turns AS t JOIN jobs AS j USING (job_id) WHERE j.state IS NOT NULL",
    "SELECT 'a turn in the hand of nobody' FROM turns AS t
     WHERE t.state = 2 AND NOT EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_no = t.worker_no
                                     AND w.ended_ms IS NULL)",
    "SELECT 'two records of one execution' FROM turn_records GROUP BY job_id, fence HAVING count(*) > 1",
    "SELECT 'a probe that no turn in hand has' FROM holds AS h
     WHERE h.ended_ms IS NULL AND h.probe_job IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM turns AS t WHERE t.job_id = h.probe_job AND t.fence = h.probe_fence AND t.in_flight = 1)",
    "SELECT 'a turn in flight without a permit' FROM turns WHERE in_flight = 1 AND permit_no IS NULL",
    "SELECT 'two jobs ended in one place' FROM jobs WHERE ended_no IS NOT NULL GROUP BY ended_no HAVING count(*) > 1",
    "SELECT 'a job was retried twice' FROM jobs WHERE retry_of IS NOT NULL GROUP BY retry_of HAVING count(*) > 1",
    "SELECT 'a transcript that was taken over or posted to, and its turn was not told' FROM turns AS t
     WHERE t.told = 0 AND EXISTS (SELECT 1 FROM inbox AS i WHERE i.job_id = t.job_id
                                                           AND (i.kind = 'answer' OR i.key IS NOT NULL))",
    "SELECT 'a message read together with a continuation' FROM inbox AS c JOIN inbox AS i USING (job_id, seq)
     WHERE c.kind = 'continuation' AND i.kind = 'message' AND i.key IS NOT NULL",
    "SELECT 'a pause by nobody' FROM turns WHERE (paused_ms IS NULL) <> (paused_by IS NULL)",
    "SELECT 'a schedule keeps more than its last runs' FROM schedule_runs GROUP BY schedule_id HAVING count(*) > 100",
    "SELECT 'a parked turn in flight' FROM turns WHERE in_flight = 1 AND parked_ms IS NOT NULL",
];
