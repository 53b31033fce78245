-- Gives turns another priority, and with it another place in line. Guard: the rows are locked. Index: primary key.
UPDATE turns SET rank_ms = rank_ms - 60000 * ($2::bigint - priority), priority = $2::bigint WHERE job_id = ANY ($1)
