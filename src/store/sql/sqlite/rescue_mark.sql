-- A lapsed worker may not come back while its turns are being taken. Guard: it still is lapsed.
UPDATE workers SET heartbeat_ms = 0
WHERE worker_no IN (SELECT value FROM json_each(?1)) AND heartbeat_ms + lease_ms <= ?2
