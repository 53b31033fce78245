-- The lane of a key. Index: unique (scope_id, queue, tenant).
SELECT lane_id FROM lanes WHERE scope_id = ?1 AND queue = ?2 AND tenant = ?3
