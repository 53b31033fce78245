-- Draws $1 numbers that order claims, permits and holds.
SELECT nextval('draws') FROM generate_series(1, $1)
