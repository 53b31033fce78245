-- The first schema. Instants are UTC Unix milliseconds on the store's clock; ids are UUIDs as 16 bytes; documents are
-- TEXT, byte for byte. Run under an exclusive lock by `store::sqlite::migrate`, which also sets `user_version`.

-- Numbers that only grow, drawn inside the transaction that uses them: `sequence` orders claims, permits and the opening
-- of holds (a fence is a draw from it); `ended` is the order in which jobs ended.
CREATE TABLE counters (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('sequence', 0), ('ended', 0);

-- What allowances, rates and concurrency belong to. `model` is empty for the whole account, whose row every model's
-- row names as its `account_id`.
CREATE TABLE scopes (
    scope_id      INTEGER PRIMARY KEY,
    account_id    INTEGER REFERENCES scopes (scope_id),
    provider      TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    max_in_flight INTEGER CHECK (max_in_flight >= 1),
    -- The controlled number of contract §8; null: not limited (an account without a limit and without a refusal).
    flow_limit     INTEGER CHECK (flow_limit >= 1),
    flow_threshold INTEGER CHECK (flow_threshold >= 1),
    flow_answered  INTEGER NOT NULL DEFAULT 0 CHECK (flow_answered >= 0),
    in_flight     INTEGER NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
    barren        INTEGER NOT NULL DEFAULT 0 CHECK (barren >= 0),
    UNIQUE (provider, account, model)
) STRICT;

-- Lines of turns that share an admission fate. `ready` counts their claimable turns; `served` is the draw of the
-- latest claim, so that the lane that waited longest is served first.
CREATE TABLE lanes (
    lane_id  INTEGER PRIMARY KEY,
    queue    TEXT    NOT NULL,
    tenant   TEXT    NOT NULL,
    scope_id INTEGER NOT NULL REFERENCES scopes (scope_id),
    ready    INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),
    served   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, queue, tenant)
) STRICT;
CREATE INDEX lanes_active ON lanes (scope_id, served, lane_id) WHERE ready > 0;

-- A process that claims. `worker_no` is never used twice.
CREATE TABLE workers (
    worker_no    INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id    BLOB    NOT NULL UNIQUE,
    queues       TEXT    NOT NULL,
    started_ms   INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    lease_ms     INTEGER NOT NULL CHECK (lease_ms > 0),
    concurrency  INTEGER NOT NULL
) STRICT;

-- The immutable spec, and the final result once there is one. The state of a live job is its turn's.
CREATE TABLE jobs (
    job_id      BLOB    NOT NULL PRIMARY KEY,
    lane_id     INTEGER NOT NULL REFERENCES lanes (lane_id),
    entry       TEXT    NOT NULL,
    -- The idempotency key with its tenant; null without a key.
    key_tenant  TEXT,
    key         TEXT,
    digest      TEXT    NOT NULL,
    spec        TEXT    NOT NULL,
    priority    INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    created_ms  INTEGER NOT NULL,
    deadline_ms INTEGER,
    retry_of    BLOB,
    state       TEXT CHECK (state IN ('succeeded', 'failed', 'cancelled')),
    result      TEXT,
    error       TEXT,
    finished_ms INTEGER,
    -- Its place in the order of endings.
    ended_no    INTEGER,
    -- Its records have outlived their retention.
    pruned      INTEGER NOT NULL DEFAULT 0 CHECK (pruned IN (0, 1)),
    CHECK ((state IS NULL) = (finished_ms IS NULL)),
    CHECK ((state IS NULL) = (ended_no IS NULL))
) STRICT;
CREATE UNIQUE INDEX jobs_key ON jobs (key_tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_no) WHERE ended_no IS NOT NULL;
CREATE INDEX jobs_kept ON jobs (pruned, finished_ms) WHERE finished_ms IS NOT NULL;

CREATE TABLE labels (
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    job_id BLOB NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_value ON labels (key, value, job_id);

-- The hot queue: one narrow row per live job, deleted when the job ends.
-- state: 0 ready (claimable), 1 later (`due_ms` has not passed), 2 running (in a worker's hand).
CREATE TABLE turns (
    job_id      BLOB    NOT NULL PRIMARY KEY,
    lane_id     INTEGER NOT NULL,
    state       INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    seq         INTEGER NOT NULL CHECK (seq >= 1),
    priority    INTEGER NOT NULL,
    -- Its order in the lane: `ready_ms - 60000 * priority`, fixed when the turn becomes ready.
    rank_ms     INTEGER NOT NULL,
    due_ms      INTEGER,
    deadline_ms INTEGER,
    executions  INTEGER NOT NULL DEFAULT 0,
    deferrals   INTEGER NOT NULL DEFAULT 0,
    repairs     INTEGER NOT NULL DEFAULT 0,
    -- Lost executions in a row.
    lost        INTEGER NOT NULL DEFAULT 0,
    waiting_since_ms INTEGER,
    -- Of a running turn:
    worker_no   INTEGER,
    fence       INTEGER,
    claimed_ms  INTEGER,
    -- The draw at which its latest permit was committed; orders it against the opening of holds.
    permit_no   INTEGER,
    -- It counts in its scope's `in_flight`.
    in_flight   INTEGER NOT NULL DEFAULT 0 CHECK (in_flight IN (0, 1)),
    -- Waiting in hand: since when, and until when it has no wish to send.
    parked_ms   INTEGER,
    wait_until_ms INTEGER,
    cancel_ms   INTEGER,
    CHECK ((state = 2) = (worker_no IS NOT NULL)),
    CHECK ((state = 2) = (fence IS NOT NULL)),
    CHECK (state = 2 OR in_flight = 0),
    CHECK (state <> 1 OR due_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_ready ON turns (lane_id, rank_ms, job_id) WHERE state = 0;
CREATE INDEX turns_later ON turns (due_ms, job_id) WHERE state = 1;
CREATE INDEX turns_running ON turns (worker_no) WHERE state = 2;
CREATE INDEX turns_deadline ON turns (deadline_ms) WHERE state < 2 AND deadline_ms IS NOT NULL;
CREATE INDEX turns_parked ON turns (parked_ms) WHERE parked_ms IS NOT NULL;

-- What joins a transcript besides the input and the responses.
CREATE TABLE inbox (
    job_id BLOB    NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (job_id, seq, n)
) STRICT, WITHOUT ROWID;

-- One row per execution that sent something or was lost; append-only. The final send stands in its own columns, so that
-- a plain job costs no second insert.
CREATE TABLE turn_records (
    record_no   INTEGER PRIMARY KEY,
    job_id      BLOB    NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    fence       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    cut         TEXT,
    started_ms  INTEGER NOT NULL,
    ended_ms    INTEGER NOT NULL,
    attempts    INTEGER,
    error       TEXT,
    response    TEXT,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    total_tokens  INTEGER,
    class       TEXT,
    cause       TEXT,
    code        TEXT,
    http_status INTEGER,
    rule        TEXT,
    rules_version INTEGER,
    decision    TEXT,
    resume_at_ms INTEGER,
    skew_ms     INTEGER,
    phase       TEXT,
    request_id  TEXT,
    provider_code TEXT,
    provider_type TEXT,
    finish_reason TEXT,
    provider_model TEXT,
    received_ms INTEGER,
    send_n             INTEGER,
    send_permit_ms     INTEGER,
    send_started_ms    INTEGER,
    send_first_byte_ms INTEGER,
    send_ended_ms      INTEGER,
    send_outcome       TEXT,
    send_http_status   INTEGER,
    send_cause         TEXT,
    send_class         TEXT,
    send_error         TEXT,
    send_wait_ms       INTEGER,
    send_wait_source   TEXT,
    send_tests_job     BLOB,
    send_tests_fence   INTEGER,
    send_tests_n       INTEGER,
    send_tests_resume_ms INTEGER,
    UNIQUE (job_id, fence)
) STRICT;
CREATE INDEX turn_records_failed ON turn_records (ended_ms, fence) WHERE outcome <> 'completed';
CREATE INDEX turn_records_tests ON turn_records (send_tests_job, send_tests_fence, send_tests_n)
    WHERE send_tests_job IS NOT NULL;

-- Sends that were replaced within their execution, written at receipt.
CREATE TABLE sends (
    job_id      BLOB    NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    fence       INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    permit_ms   INTEGER NOT NULL,
    started_ms  INTEGER NOT NULL,
    first_byte_ms INTEGER,
    ended_ms    INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    http_status INTEGER,
    cause       TEXT,
    class       TEXT,
    error       TEXT,
    wait_ms     INTEGER,
    wait_source TEXT,
    tests_job   BLOB,
    tests_fence INTEGER,
    tests_n     INTEGER,
    tests_resume_ms INTEGER,
    PRIMARY KEY (job_id, fence, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX sends_ended ON sends (ended_ms, fence, n);
CREATE INDEX sends_tests ON sends (tests_job, tests_fence, tests_n) WHERE tests_job IS NOT NULL;

CREATE VIEW all_sends (
    job_id, fence, n, permit_ms, started_ms, first_byte_ms, ended_ms, outcome, http_status, cause, class, error,
    wait_ms, wait_source, tests_job, tests_fence, tests_n, tests_resume_ms
) AS
SELECT job_id, fence, n, permit_ms, started_ms, first_byte_ms, ended_ms, outcome, http_status, cause, class, error,
       wait_ms, wait_source, tests_job, tests_fence, tests_n, tests_resume_ms
FROM sends
UNION ALL
SELECT job_id, fence, send_n, send_permit_ms, send_started_ms, send_first_byte_ms, send_ended_ms, send_outcome,
       send_http_status, send_cause, send_class, send_error, send_wait_ms, send_wait_source,
       send_tests_job, send_tests_fence, send_tests_n, send_tests_resume_ms
FROM turn_records
WHERE send_n IS NOT NULL;

-- Every candidate of one refusal (or of a 5xx that named a wait): the selected one in columns, all of them as JSON.
CREATE TABLE reset_evidence (
    job_id      BLOB    NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    fence       INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    reset_at_ms INTEGER,
    resume_at_ms INTEGER,
    skew_ms     INTEGER NOT NULL,
    source_kind TEXT,
    source_name TEXT,
    raw         TEXT,
    limit_kind  TEXT,
    cause       TEXT    NOT NULL,
    rule        TEXT,
    rules_version INTEGER NOT NULL,
    candidates  TEXT    NOT NULL,
    PRIMARY KEY (job_id, fence, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX reset_evidence_received ON reset_evidence (received_ms, fence, n);

-- Scopes closed until an instant, or (`until_ms` null) until somebody lifts them.
CREATE TABLE holds (
    hold_id     BLOB    NOT NULL PRIMARY KEY,
    scope_id    INTEGER NOT NULL REFERENCES scopes (scope_id),
    cause       TEXT    NOT NULL,
    kind        TEXT,
    opened_ms   INTEGER NOT NULL,
    -- The draw at which it was opened, or dated again by a refused probe: permits drawn before it lift nothing.
    dated_no    INTEGER NOT NULL,
    until_ms    INTEGER,
    source      TEXT    NOT NULL,
    raw         TEXT,
    refusal_job   BLOB,
    refusal_fence INTEGER,
    refusal_n     INTEGER,
    extended    INTEGER NOT NULL DEFAULT 0,
    barren      INTEGER NOT NULL DEFAULT 0,
    probe_worker   INTEGER,
    probe_job      BLOB,
    probe_fence    INTEGER,
    probe_since_ms INTEGER,
    ended_ms    INTEGER,
    "end"       TEXT,
    CHECK ((probe_job IS NULL) = (probe_fence IS NULL)),
    CHECK ((ended_ms IS NULL) = ("end" IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX holds_open ON holds (scope_id) WHERE ended_ms IS NULL;
CREATE INDEX holds_opened ON holds (opened_ms);
CREATE INDEX holds_refusal ON holds (refusal_job, refusal_fence, refusal_n);

-- What befell a hold: opened, extended, refused_again, concurrent_refusal, probe_started, probe_returned, reopened, released.
CREATE TABLE hold_events (
    event_no INTEGER PRIMARY KEY,
    hold_id  BLOB    NOT NULL REFERENCES holds (hold_id) ON DELETE CASCADE,
    at_ms    INTEGER NOT NULL,
    event    TEXT    NOT NULL,
    until_ms INTEGER,
    barren   INTEGER NOT NULL,
    job_id   BLOB,
    fence    INTEGER,
    n        INTEGER,
    "by"     TEXT,
    reason   TEXT
) STRICT;
CREATE INDEX hold_events_hold ON hold_events (hold_id, event_no);
