-- Every part of the schema with its text, as written. A walk of the schema's own table, which is small.
SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1
