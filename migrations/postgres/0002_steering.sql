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

-- Of a worker that is no more: `lapsed_ms`: it may not renew, its turns are being taken; `ended_ms`: it has none any more.
ALTER TABLE workers ADD COLUMN lapsed_ms BIGINT;
CREATE INDEX workers_there ON workers (worker_no) WHERE ended_ms IS NULL;
CREATE INDEX workers_ended ON workers (ended_ms) WHERE ended_ms IS NOT NULL;

CREATE INDEX jobs_scheduled_live ON jobs (schedule_id) WHERE schedule_id IS NOT NULL AND state IS NULL;

-- With the lane, so that what is due later, or paused, is counted by queue without a look at each turn.
DROP INDEX turns_later;
CREATE INDEX turns_later ON turns (due_ms, job_id) INCLUDE (lane_id) WHERE state = 1 AND paused_ms IS NULL;

CREATE INDEX jobs_scheduled ON jobs (schedule_id, job_id) WHERE schedule_id IS NOT NULL;
-- Covers what tokens are counted by: they stand behind the responses, which are long. With the fence, as the index of
-- failures has it: of the two that one is then the cheaper where failures are asked for.
DROP INDEX turn_records_ended;
CREATE INDEX turn_records_ended ON turn_records (ended_ms, fence)
    INCLUDE (job_id, outcome, attempts, input_tokens, output_tokens, total_tokens);

-- A word of a JSON document by its path; null where it has none, or is no such document. Postgres takes no document apart
-- that has an escaped NUL anywhere, so those are read as spaces: the words that are asked for have none. What cannot be
-- read at all must not keep a job from ending.
CREATE FUNCTION document_word(document TEXT, VARIADIC path TEXT[]) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT COST 1000 AS $$
BEGIN
    RETURN replace(document, '\u0000', '\u0020')::json #>> path;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

-- What a job ended with, out of its error document (contract §7). What has no cause goes by its code.
ALTER TABLE jobs
    ADD COLUMN error_cause TEXT COLLATE "C" GENERATED ALWAYS AS (
        coalesce(document_word(error, 'model_failure', 'cause'), document_word(error, 'code'))
    ) STORED,
    ADD COLUMN error_class TEXT COLLATE "C" GENERATED ALWAYS AS (document_word(error, 'class')) STORED,
    ADD COLUMN error_code TEXT COLLATE "C" GENERATED ALWAYS AS (document_word(error, 'code')) STORED,
    ADD COLUMN error_http BIGINT GENERATED ALWAYS AS (
        CASE WHEN document_word(error, 'model_failure', 'http_status') ~ '^[0-9]{1,9}$'
             THEN document_word(error, 'model_failure', 'http_status')::bigint END
    ) STORED;
-- Few jobs fail: finding them walks no others, and costs the others nothing.
CREATE INDEX jobs_failed ON jobs (job_id) WHERE state IN ('failed', 'cancelled');
-- By the end; covers what is counted of the last hour.
DROP INDEX jobs_kept;
CREATE INDEX jobs_kept ON jobs (pruned, finished_ms, ended_no) INCLUDE (state, lane_id) WHERE finished_ms IS NOT NULL;

-- The hold that a refusal opened or dated, whoever dated it since.
CREATE INDEX hold_events_refusal ON hold_events (job_id, fence, n) WHERE job_id IS NOT NULL;
-- The audit looks at every refusal: what it asks of each stands in one place, and not behind long answers.
ALTER TABLE reset_evidence ADD COLUMN lane_id BIGINT;
UPDATE reset_evidence SET lane_id = (SELECT j.lane_id FROM jobs AS j WHERE j.job_id = reset_evidence.job_id);
DROP INDEX sends_tests;
CREATE INDEX sends_tests ON sends (tests_job, tests_fence, tests_n) INCLUDE (outcome, started_ms, tests_resume_ms)
    WHERE tests_job IS NOT NULL;
DROP INDEX turn_records_tests;
CREATE INDEX turn_records_tests ON turn_records (send_tests_job, send_tests_fence, send_tests_n)
    INCLUDE (send_outcome, send_started_ms, send_tests_resume_ms, send_n) WHERE send_tests_job IS NOT NULL;
