-- Takes claimed turns off lanes and notes the draw. Guard: as lanes_ready. Index: primary key.
WITH locked AS MATERIALIZED (
    SELECT lane_id FROM lanes WHERE lane_id = ANY ($1::bigint[]) ORDER BY lane_id FOR NO KEY UPDATE
)
UPDATE lanes SET ready = lanes.ready - e.taken, served = e.served
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS e (lane_id, taken, served)
WHERE lanes.lane_id = e.lane_id AND e.lane_id IN (SELECT lane_id FROM locked)
