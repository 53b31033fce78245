-- Tells those that listen on $1 that $2 has committed something.
SELECT pg_notify($1, $2)
