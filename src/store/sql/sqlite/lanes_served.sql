-- Takes claimed turns off lanes, notes the draw, and counts the claims of the minute ?2 and of the one before:
-- [[lane_id, taken, served], …]. Who is a little late over a minute's end counts to the minute that has begun.
-- Index: primary key.
UPDATE lanes
SET ready = lanes.ready - e.taken, served = e.served,
    claims_before = CASE WHEN lanes.minute IN (?2, ?2 + 1) THEN lanes.claims_before
                         WHEN lanes.minute = ?2 - 1 THEN lanes.claims ELSE 0 END,
    claims = e.taken + CASE WHEN lanes.minute IN (?2, ?2 + 1) THEN lanes.claims ELSE 0 END,
    minute = CASE WHEN lanes.minute = ?2 + 1 THEN lanes.minute ELSE ?2 END
FROM (SELECT value ->> 0 AS lane_id, value ->> 1 AS taken, value ->> 2 AS served FROM json_each(?1)) AS e
WHERE lanes.lane_id = e.lane_id
