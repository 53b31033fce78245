-- What accepted jobs take over of other transcripts. Guard: primary key.
INSERT INTO inbox (job_id, seq, n, kind, body, at_ms)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[])
