-- Takes claimed turns off lanes and notes the draw: [[lane_id, taken, served], …]. Index: primary key.
UPDATE lanes SET ready = lanes.ready - e.taken, served = e.served
FROM (SELECT value ->> 0 AS lane_id, value ->> 1 AS taken, value ->> 2 AS served FROM json_each(?1)) AS e
WHERE lanes.lane_id = e.lane_id
