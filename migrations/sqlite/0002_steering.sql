-- What people do to jobs, queues and holds; schedules; what is asked for by time.

-- A paused turn is neither claimed nor counted as ready; what is in hand finishes first.
ALTER TABLE turns ADD COLUMN paused_ms INTEGER;
ALTER TABLE turns ADD COLUMN paused_by TEXT;
ALTER TABLE turns ADD COLUMN pause_reason TEXT;
-- Something joined the job's transcript from outside.
ALTER TABLE turns ADD COLUMN told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1));
DROP INDEX turns_ready;
DROP INDEX turns_later;
CREATE INDEX turns_ready ON turns (lane_id, rank_ms, job_id) WHERE state = 0 AND paused_ms IS NULL;
CREATE INDEX turns_later ON turns (due_ms, job_id) WHERE state = 1 AND paused_ms IS NULL;
CREATE INDEX turns_paused ON turns (lane_id) WHERE paused_ms IS NOT NULL;

-- Paused queues, one row each; a queue that runs has none.
CREATE TABLE queues (
    queue        TEXT    NOT NULL PRIMARY KEY,
    paused_ms    INTEGER NOT NULL,
    paused_by    TEXT    NOT NULL,
    pause_reason TEXT
) STRICT, WITHOUT ROWID;

-- Claims of the minute `minute` (whole minutes since 1970) and of the one before it.
ALTER TABLE lanes ADD COLUMN minute INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN claims_before INTEGER NOT NULL DEFAULT 0;

-- A worker that is no more stays for a day: a queue that nobody takes says when it was taken last. `lapsed_ms`: it may
-- not renew, its turns are being taken; `ended_ms`: it has none any more.
ALTER TABLE workers ADD COLUMN lapsed_ms INTEGER;
ALTER TABLE workers ADD COLUMN ended_ms INTEGER;
CREATE INDEX workers_there ON workers (worker_no) WHERE ended_ms IS NULL;
CREATE INDEX workers_ended ON workers (ended_ms) WHERE ended_ms IS NOT NULL;

-- Makes a posting repeatable.
ALTER TABLE inbox ADD COLUMN key TEXT;
CREATE INDEX inbox_key ON inbox (job_id, key) WHERE key IS NOT NULL;

ALTER TABLE jobs ADD COLUMN schedule_id BLOB;
CREATE INDEX jobs_scheduled_live ON jobs (schedule_id) WHERE schedule_id IS NOT NULL AND state IS NULL;
-- A job is retried once; what failed again is retried in its turn.
CREATE UNIQUE INDEX jobs_retry_of ON jobs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX turn_records_ended ON turn_records (ended_ms);

CREATE TABLE schedules (
    schedule_id BLOB    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL UNIQUE,
    cron        TEXT    NOT NULL,
    zone        TEXT    NOT NULL,
    spec        TEXT    NOT NULL,
    catch_up    TEXT    NOT NULL CHECK (catch_up IN ('none', 'last', 'all')),
    overlap     TEXT    NOT NULL CHECK (overlap IN ('skip', 'queue')),
    paused_ms    INTEGER,
    paused_by    TEXT,
    pause_reason TEXT,
    -- The nominal instant of the next firing; null: there is none.
    next_ms     INTEGER,
    created_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_next ON schedules (next_ms) WHERE next_ms IS NOT NULL AND paused_ms IS NULL;

-- What came of each nominal instant.
CREATE TABLE schedule_runs (
    schedule_id BLOB    NOT NULL REFERENCES schedules (schedule_id) ON DELETE CASCADE,
    nominal_ms  INTEGER NOT NULL,
    fired_ms    INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    job_id      BLOB,
    error       TEXT,
    PRIMARY KEY (schedule_id, nominal_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_runs_job ON schedule_runs (job_id) WHERE job_id IS NOT NULL;
