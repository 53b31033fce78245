-- The first turns of each lane in $1, as many as $2 says, locked, each with a draw and what its worker needs; those past
-- their deadline at $3 are left to be ended, with the failure they met last. The choice is fenced: nothing re-runs it.
-- Index: turns_ready, primary keys.
WITH picked AS MATERIALIZED (
    SELECT t.job_id, t.lane_id, t.rank_ms, t.seq, t.executions, t.deferrals, t.repairs, t.waiting_since_ms, t.told
    FROM unnest($1::bigint[], $2::bigint[]) AS g (lane_id, n)
    CROSS JOIN LATERAL (
        SELECT x.job_id, x.lane_id, x.rank_ms, x.seq, x.executions, x.deferrals, x.repairs, x.waiting_since_ms, x.told
        FROM turns AS x
        WHERE x.lane_id = g.lane_id AND x.state = 0 AND x.paused_ms IS NULL
          AND (x.deadline_ms IS NULL OR x.deadline_ms > $3)
        ORDER BY x.rank_ms, x.job_id LIMIT g.n
        FOR UPDATE SKIP LOCKED
    ) AS t
)
SELECT p.job_id, p.lane_id, p.rank_ms, p.seq, p.executions, p.deferrals, p.repairs, p.waiting_since_ms,
       j.entry, j.spec, j.created_ms, j.deadline_ms, nextval('draws') AS fence, p.told
FROM picked AS p JOIN jobs AS j ON j.job_id = p.job_id
