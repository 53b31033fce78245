-- Takes claimed turns off lanes, notes the draw, and counts the claims of the minute $4 and of the one before. Who is a
-- little late over a minute's end counts to the minute that has begun. Guard: as lanes_ready. Index: primary key.
WITH locked AS MATERIALIZED (
    SELECT lane_id FROM lanes WHERE lane_id = ANY ($1::bigint[]) ORDER BY lane_id FOR NO KEY UPDATE
)
UPDATE lanes
SET ready = lanes.ready - e.taken, served = e.served,
    claims_before = CASE WHEN lanes.minute IN ($4::bigint, $4::bigint + 1) THEN lanes.claims_before
                         WHEN lanes.minute = $4::bigint - 1 THEN lanes.claims ELSE 0 END,
    claims = e.taken + CASE WHEN lanes.minute IN ($4::bigint, $4::bigint + 1) THEN lanes.claims ELSE 0 END,
    minute = CASE WHEN lanes.minute = $4::bigint + 1 THEN lanes.minute ELSE $4::bigint END
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS e (lane_id, taken, served)
WHERE lanes.lane_id = e.lane_id AND e.lane_id IN (SELECT lane_id FROM locked)
