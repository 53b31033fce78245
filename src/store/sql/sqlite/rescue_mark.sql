-- A lapsed worker may not come back while its turns are being taken. Index: primary key.
UPDATE workers SET lapsed_ms = coalesce(lapsed_ms, ?2) WHERE worker_no IN (SELECT value FROM json_each(?1))
