-- What people do to jobs, queues and holds; schedules; what is asked for by time.

-- A paused turn is neither claimed nor counted as ready; what is in hand finishes first.
ALTER TABLE turns
    ADD COLUMN paused_ms BIGINT,
    ADD COLUMN paused_by TEXT,
    ADD COLUMN pause_reason TEXT,
    -- Something joined the job's transcript from outside.
    ADD COLUMN told SMALLINT NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    -- Of an `at_most_once` job: one that is lost while `in_flight` may have been sent, and is not sent again.
    ADD COLUMN once SMALLINT NOT NULL DEFAULT 0 CHECK (once IN (0, 1));
DROP INDEX turns_ready;
DROP INDEX turns_later;
CREATE INDEX turns_ready ON turns (lane_id, rank_ms, job_id) WHERE state = 0 AND paused_ms IS NULL;
CREATE INDEX turns_later ON turns (due_ms, job_id) WHERE state = 1 AND paused_ms IS NULL;
CREATE INDEX turns_paused ON turns (lane_id) WHERE paused_ms IS NOT NULL;

-- Paused queues, one row each; a queue that runs has none.
CREATE TABLE queues (
    queue        TEXT   COLLATE "C" PRIMARY KEY,
    paused_ms    BIGINT NOT NULL,
    paused_by    TEXT   NOT NULL,
    pause_reason TEXT
);

-- Claims of the minute `minute` (whole minutes since 1970) and of the one before it.
ALTER TABLE lanes
    ADD COLUMN minute BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN claims BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN claims_before BIGINT NOT NULL DEFAULT 0;

-- A worker that is no more stays for a day: a queue that nobody takes says when it was taken last.
ALTER TABLE workers ADD COLUMN ended_ms BIGINT;

-- Makes a posting repeatable.
ALTER TABLE inbox ADD COLUMN key TEXT COLLATE "C";
CREATE INDEX inbox_key ON inbox (job_id, key) WHERE key IS NOT NULL;

ALTER TABLE jobs ADD COLUMN schedule_id UUID;
-- A job is retried once; what failed again is retried in its turn.
CREATE UNIQUE INDEX jobs_retry_of ON jobs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX turn_records_ended ON turn_records (ended_ms);

CREATE TABLE schedules (
    schedule_id  UUID   PRIMARY KEY,
    paused_ms    BIGINT,
    -- The nominal instant of the next firing; null: there is none.
    next_ms      BIGINT,
    created_ms   BIGINT NOT NULL,
    name         TEXT   COLLATE "C" NOT NULL UNIQUE,
    cron         TEXT   NOT NULL,
    zone         TEXT   NOT NULL,
    spec         TEXT   NOT NULL,
    catch_up     TEXT   NOT NULL CHECK (catch_up IN ('none', 'last', 'all')),
    overlap      TEXT   NOT NULL CHECK (overlap IN ('skip', 'queue')),
    paused_by    TEXT,
    pause_reason TEXT
);
CREATE INDEX schedules_next ON schedules (next_ms) WHERE next_ms IS NOT NULL AND paused_ms IS NULL;

-- What came of each nominal instant.
CREATE TABLE schedule_runs (
    schedule_id UUID   NOT NULL REFERENCES schedules (schedule_id) ON DELETE CASCADE,
    nominal_ms  BIGINT NOT NULL,
    fired_ms    BIGINT NOT NULL,
    job_id      UUID,
    outcome     TEXT   NOT NULL,
    error       TEXT,
    PRIMARY KEY (schedule_id, nominal_ms)
);
CREATE INDEX schedule_runs_job ON schedule_runs (job_id) WHERE job_id IS NOT NULL;
