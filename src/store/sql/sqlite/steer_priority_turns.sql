-- Gives turns another priority, and with it another place in line. Index: primary key.
UPDATE turns SET rank_ms = rank_ms - 60000 * (?2 - priority), priority = ?2
WHERE job_id IN (SELECT unhex(value) FROM json_each(?1))
