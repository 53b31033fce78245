-- Adds to lanes' counts of claimable turns: [[lane_id, delta], …]. Guard: CHECK (ready >= 0). Index: primary key.
UPDATE lanes SET ready = lanes.ready + e.delta
FROM (SELECT value ->> 0 AS lane_id, value ->> 1 AS delta FROM json_each(?1)) AS e
WHERE lanes.lane_id = e.lane_id
