-- What else joins the transcripts of the jobs ?1, in order. Index: primary key.
SELECT e.key, i.seq, i.kind, i.body, i.at_ms
FROM json_each(?1) AS e
CROSS JOIN inbox AS i ON i.job_id = unhex(e.value)
ORDER BY e.key, i.seq, i.n
