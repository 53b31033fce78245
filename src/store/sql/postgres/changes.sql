-- What was told to those that cannot listen. Index: primary key.
SELECT value FROM counters WHERE name = 'changes'
