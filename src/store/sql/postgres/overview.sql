-- One line of figures. Deferred turns are those of held scopes; the ended ones are counted for ever.
-- Index: lanes_active, holds_open, turns_running, turns_later.
WITH held AS MATERIALIZED (
    SELECT DISTINCT s.scope_id FROM holds AS h JOIN scopes AS s ON s.scope_id = h.scope_id OR s.account_id = h.scope_id
    WHERE h.ended_ms IS NULL
), lines AS MATERIALIZED (
    SELECT scope_id, sum(ready)::bigint AS ready FROM lanes WHERE ready > 0 GROUP BY scope_id
)
SELECT (SELECT coalesce(sum(ready), 0)::bigint FROM lines WHERE scope_id NOT IN (SELECT scope_id FROM held)),
       (SELECT count(*) FROM turns WHERE state = 2),
       (SELECT coalesce(sum(ready), 0)::bigint FROM lines WHERE scope_id IN (SELECT scope_id FROM held)),
       (SELECT count(*) FROM turns WHERE state = 1 AND paused_ms IS NULL),
       (SELECT coalesce(max(value), 0) FROM counters WHERE name = 'succeeded'),
       (SELECT coalesce(max(value), 0) FROM counters WHERE name = 'failed'),
       (SELECT coalesce(max(value), 0) FROM counters WHERE name = 'cancelled'),
       (SELECT count(*) FROM holds WHERE ended_ms IS NULL),
       (SELECT min(until_ms) FROM holds WHERE ended_ms IS NULL)
