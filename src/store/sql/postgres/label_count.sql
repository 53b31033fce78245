-- How many jobs carry the label $1 = $2, counted to $3. Index: labels_value.
SELECT count(*) FROM (SELECT 1 FROM labels WHERE key = $1 AND value = $2 LIMIT $3) AS d
