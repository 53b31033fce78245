-- Labels of accepted jobs. Guard: primary key (the last of two equal names would be a lie, so it is an error).
INSERT INTO labels (job_id, key, value) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[])
