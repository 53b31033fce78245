-- What people do to jobs, queues and holds; schedules; what is asked for by time.

-- A paused turn is neither claimed nor counted as ready; what is in hand finishes first.
ALTER TABLE turns ADD COLUMN paused_ms INTEGER;
ALTER TABLE turns ADD COLUMN paused_by TEXT;
ALTER TABLE turns ADD COLUMN pause_reason TEXT;
-- Something joined the job's transcript from outside.
ALTER TABLE turns ADD COLUMN told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1));
-- Of an `at_most_once` job: one that is lost while `in_flight` may have been sent, and is not sent again.
ALTER TABLE turns ADD COLUMN once INTEGER NOT NULL DEFAULT 0 CHECK (once IN (0, 1));
DROP INDEX turns_ready;
DROP INDEX turns_later;
CREATE INDEX turns_ready ON turns (lane_id, rank_ms, job_id) WHERE state = 0 AND paused_ms IS NULL;
-- With the lane, so that what is due later is counted by queue without a look at each turn.
CREATE INDEX turns_later ON turns (due_ms, job_id, lane_id, paused_ms) WHERE state = 1 AND paused_ms IS NULL;
CREATE INDEX turns_paused ON turns (lane_id, paused_ms) WHERE paused_ms IS NOT NULL;

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
-- Covers what tokens are counted by: they stand behind the responses, which are long.
CREATE INDEX turn_records_ended ON turn_records (
    ended_ms, job_id, outcome, attempts, input_tokens, output_tokens, total_tokens
);

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

-- What a job ended with, out of its error document (contract §7): computed, and kept in `jobs_failed` only. What has no
-- cause goes by its code.
ALTER TABLE jobs ADD COLUMN error_cause TEXT GENERATED ALWAYS AS (
    CASE WHEN json_valid(error) THEN CAST(coalesce(error ->> '$.model_failure.cause', error ->> '$.code') AS TEXT) END
) VIRTUAL;
ALTER TABLE jobs ADD COLUMN error_class TEXT GENERATED ALWAYS AS (
    CASE WHEN json_valid(error) THEN CAST(error ->> '$.class' AS TEXT) END
) VIRTUAL;
ALTER TABLE jobs ADD COLUMN error_code TEXT GENERATED ALWAYS AS (
    CASE WHEN json_valid(error) THEN CAST(error ->> '$.code' AS TEXT) END
) VIRTUAL;
ALTER TABLE jobs ADD COLUMN error_http INTEGER GENERATED ALWAYS AS (
    CASE WHEN json_valid(error) THEN CAST(error ->> '$.model_failure.http_status' AS INTEGER) END
) VIRTUAL;
-- Few jobs fail: finding them walks no others, and costs the others nothing.
CREATE INDEX jobs_failed ON jobs (job_id, state, error_cause, error_class, error_code, error_http, lane_id)
    WHERE state IN ('failed', 'cancelled');
CREATE INDEX jobs_scheduled ON jobs (schedule_id, job_id) WHERE schedule_id IS NOT NULL;
-- By the end; covers what lists by the end and counts of the last hour filter by.
DROP INDEX jobs_kept;
CREATE INDEX jobs_kept ON jobs (pruned, finished_ms, ended_no, state, lane_id) WHERE finished_ms IS NOT NULL;
-- The hold that a refusal opened or dated, whoever dated it since.
CREATE INDEX hold_events_refusal ON hold_events (job_id, fence, n) WHERE job_id IS NOT NULL;
-- The audit looks at every refusal: what it asks of each stands in one place, and not behind long answers.
ALTER TABLE reset_evidence ADD COLUMN lane_id INTEGER;
UPDATE reset_evidence SET lane_id = (SELECT j.lane_id FROM jobs AS j WHERE j.job_id = reset_evidence.job_id);
DROP INDEX sends_tests;
CREATE INDEX sends_tests ON sends (tests_job, tests_fence, tests_n, outcome, started_ms, tests_resume_ms)
    WHERE tests_job IS NOT NULL;
DROP INDEX turn_records_tests;
CREATE INDEX turn_records_tests ON turn_records (
    send_tests_job, send_tests_fence, send_tests_n, send_outcome, send_started_ms, send_tests_resume_ms, job_id, fence, send_n
) WHERE send_tests_job IS NOT NULL;
