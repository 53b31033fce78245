-- Adds to lanes' counts of claimable turns. Guard: CHECK (ready >= 0); the rows are locked in the order of their numbers.
-- Index: primary key.
WITH locked AS MATERIALIZED (
    SELECT lane_id FROM lanes WHERE lane_id = ANY ($1::bigint[]) ORDER BY lane_id FOR NO KEY UPDATE
)
UPDATE lanes SET ready = lanes.ready + e.delta
FROM unnest($1::bigint[], $2::bigint[]) AS e (lane_id, delta)
WHERE lanes.lane_id = e.lane_id AND e.lane_id IN (SELECT lane_id FROM locked)
