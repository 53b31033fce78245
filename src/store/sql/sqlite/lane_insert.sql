-- A lane. Guard: unique key.
INSERT INTO lanes (scope_id, queue, tenant) VALUES (?1, ?2, ?3) RETURNING lane_id
