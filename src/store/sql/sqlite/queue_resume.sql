-- Lets a queue go on. Index: primary key.
DELETE FROM queues WHERE queue = ?1
