-- What else joins the transcripts of the jobs $1, in order. Index: primary key.
SELECT e.place, i.seq, i.kind, i.body, i.at_ms
FROM unnest($1::uuid[]) WITH ORDINALITY AS e (job_id, place) JOIN inbox AS i ON i.job_id = e.job_id
ORDER BY e.place, i.seq, i.n
