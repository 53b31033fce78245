//! What lists cost on a large store: `cargo test --test store -- --ignored --nocapture large` prints the figures.
//! `ROWS` (1,000,000) is the number of jobs; a tenth as many refusals, and as many turns wait behind one hold.

use super::harness::{SqliteHarness, fresh};
use crate::conformance::*;
use reprieve::store::*;
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use std::future::Future;
use std::time::{Duration, Instant};

/// No list may take longer, on whatever machine: a page that takes seconds is not looked at.
const LONGEST: Duration = Duration::from_secs(8);

/// The job of the number `n`.
fn id(n: i64) -> JobId {
    JobId(uuid::Uuid::from_u128(u128::try_from(n).unwrap()))
}

/// Jobs 1..=rows ended (one in a hundred failed, one in ten was refused once and kept waiting), rows+1..=2·rows wait behind
/// an open hold.
async fn fill(h: &SqliteHarness, rows: i64) {
    let mut conn = SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap();
    let n = format!("WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < {rows})");
    let blob = |n: &str| format!("unhex(printf('%032x', {n}))");
    let (this, waiting) = (blob("n"), blob(&format!("n + {rows}")));
    let error = r#"{"code":"model_incomplete","message":"m","class":"unavailable","retryable":true,"model_failure":{"schema_version":1,"cause":"transport"}}"#;
    let candidates = r#"[{"source":"header","name":"retry-after","raw":"7","at_ms":1,"kind":null,"remaining":null,"verdict":"selected","why":"the latest that stands"},{"source":"body","name":"/error/resets_at","raw":"7","at_ms":1,"kind":null,"remaining":null,"verdict":"earlier","why":"stands, but ends before"}]"#;
    let spec = "x".repeat(1_000);
    for statement in [
        format!(
            "INSERT INTO jobs (job_id, lane_id, entry, digest, spec, priority, created_ms, state, result, error, finished_ms, ended_no)
             {n} SELECT {this}, 1, 'e', 'd', '{spec}', 0, {T0} + n, CASE n % 100 WHEN 0 THEN 'failed' ELSE 'succeeded' END, '{spec}',
                        CASE n % 100 WHEN 0 THEN '{error}' END, {T0} + n, n FROM n"
        ),
        format!("INSERT INTO labels (key, value, job_id) {n} SELECT 'env', 'prod', {this} FROM n"),
        format!("INSERT INTO labels (key, value, job_id) {n} SELECT 'rare', 'yes', {this} FROM n WHERE n % 10000 = 1"),
        format!(
            "INSERT INTO turn_records (job_id, fence, seq, outcome, started_ms, ended_ms, attempts, response, error, input_tokens,
                                       output_tokens, total_tokens, cause, class, code, send_n, send_permit_ms, send_started_ms,
                                       send_ended_ms, send_outcome, send_tests_job, send_tests_fence, send_tests_n, send_tests_resume_ms)
             {n} SELECT {this}, n, 1, CASE n % 100 WHEN 0 THEN 'failed' ELSE 'completed' END, {T0} + n, {T0} + n, 1, '{spec}',
                        CASE n % 100 WHEN 0 THEN '{error}' END, 100, 10, 110, CASE n % 100 WHEN 0 THEN 'transport' END, NULL, NULL,
                        2, {T0} + n, {T0} + n, {T0} + n, CASE n % 30 WHEN 0 THEN 'refused' ELSE 'answered' END,
                        CASE n % 10 WHEN 0 THEN {this} END, CASE n % 10 WHEN 0 THEN n END, CASE n % 10 WHEN 0 THEN 1 END,
                        CASE n % 10 WHEN 0 THEN {T0} + n - 9 END FROM n"
        ),
        format!(
            "INSERT INTO sends (job_id, fence, n, seq, permit_ms, started_ms, ended_ms, outcome, http_status, cause, class, error, wait_ms, wait_source)
             {n} SELECT {this}, n, 1, 1, {T0} + n, {T0} + n, {T0} + n, 'refused', 429, 'rate_limit', 'rate_limit', '{error}', 7, 'retry-after'
             FROM n WHERE n % 10 = 0"
        ),
        format!(
            "INSERT INTO reset_evidence (job_id, fence, n, received_ms, reset_at_ms, resume_at_ms, skew_ms, source_kind, source_name, raw,
                                         cause, rule, rules_version, candidates, lane_id)
             {n} SELECT {this}, n, 1, {T0} + n, {T0} + n + 7, {T0} + n + 7, 0, 'header', 'retry-after', '7', 'rate_limit', 'r', 1, '{candidates}', 1
             FROM n WHERE n % 10 = 0"
        ),
        format!(
            "INSERT INTO holds (hold_id, scope_id, cause, opened_ms, dated_no, until_ms, source, refusal_job, refusal_fence, refusal_n, ended_ms, \"end\")
             {n} SELECT {this}, 2, 'rate_limit', {T0} + n, n, {T0} + n + 7, 'retry-after', {this}, n, 1, {T0} + n + 8, 'answered'
             FROM n WHERE n % 10 = 0"
        ),
        format!(
            "INSERT INTO hold_events (hold_id, at_ms, event, until_ms, barren, job_id, fence, n)
             {n} SELECT {this}, {T0} + n, 'opened', {T0} + n + 7, 0, {this}, n, 1 FROM n WHERE n % 10 = 0"
        ),
        format!(
            "INSERT INTO jobs (job_id, lane_id, entry, digest, spec, priority, created_ms)
             {n} SELECT {waiting}, 1, 'e', 'd', '{spec}', 0, {T0} + {rows} + n FROM n"
        ),
        format!(
            "INSERT INTO turns (job_id, lane_id, state, seq, priority, rank_ms, due_ms)
             {n} SELECT {waiting}, 1, CASE n % 100 WHEN 0 THEN 1 ELSE 0 END, 1, 0, {T0} + n, CASE n % 100 WHEN 0 THEN {T0} + n END FROM n"
        ),
        "UPDATE lanes SET ready = (SELECT count(*) FROM turns WHERE state = 0)".to_owned(),
        format!(
            "INSERT INTO holds (hold_id, scope_id, cause, opened_ms, dated_no, until_ms, source) VALUES (x'{:032x}', 2, 'rate_limit', {T0}, 1, {T0} + 9, 'x')",
            u128::MAX
        ),
    ] {
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

async fn timed<T>(what: &str, asked: impl Future<Output = Result<T>>) -> T {
    let start = Instant::now();
    let got = asked.await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let took = start.elapsed();
    println!("{what:<44} {:>9.1} ms", took.as_secs_f64() * 1_000.0);
    assert!(took < LONGEST, "{what} took {took:?}");
    got
}

#[tokio::test]
#[ignore = "takes minutes: a million rows"]
async fn no_list_is_slow_on_a_large_store() {
    let rows: i64 = std::env::var("ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let h = fresh().await;
    wide(&h, &["m"]).await;
    // Makes the lane, the scope and the account, of which it is the first.
    let first = submit(&h, jobs("m", 1)).await;
    h.store().cancel(first, T0).await.unwrap();
    fill(&h, rows).await;
    let s = h.store();
    let page = Query { limit: 50, now_ms: T0, ..Query::default() };
    let one = |word: &str| vec![word.to_owned()];
    let label = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];

    timed("jobs", s.jobs(page.clone())).await;
    timed("jobs state=failed", s.jobs(Query { states: one("failed"), ..page.clone() })).await;
    timed("jobs cause=none such", s.jobs(Query { causes: one("x"), ..page.clone() })).await;
    timed("jobs state=deferred", s.jobs(Query { states: one("deferred"), ..page.clone() })).await;
    timed("jobs why=hold", s.jobs(Query { whys: one("hold"), ..page.clone() })).await;
    timed("jobs why=in_place (none)", s.jobs(Query { whys: one("in_place"), ..page.clone() })).await;
    let rare = timed("jobs label rare", s.jobs(Query { labels: label("rare", "yes"), ..page.clone() })).await;
    assert_eq!(rare.items.len(), usize::try_from((rows / 10_000).clamp(1, 50)).unwrap());
    timed("jobs label common", s.jobs(Query { labels: label("env", "prod"), ..page.clone() })).await;
    timed(
        "jobs label common and rare",
        s.jobs(Query { labels: [label("env", "prod"), label("rare", "yes")].concat(), ..page.clone() }),
    )
    .await;
    timed("jobs by end", s.jobs(Query { by_end: true, ..page.clone() })).await;
    timed("jobs by end, state=failed", s.jobs(Query { by_end: true, states: one("failed"), ..page.clone() })).await;
    timed(
        "jobs by end, none such",
        s.jobs(Query { by_end: true, states: one("cancelled"), since_ms: Some(T0 + 1), ..page.clone() }),
    )
    .await;
    timed("jobs frozen in the middle", s.jobs(Query { to_id: Some(id(rows / 2)), ..page.clone() })).await;
    timed("jobs queue=none such", s.jobs(Query { queues: one("x"), ..page.clone() })).await;
    timed("failures with retried", s.failures(Query { include_retried: true, ..page.clone() })).await;
    timed(
        "failures cause=none such, with retried",
        s.failures(Query { include_retried: true, causes: one("x"), ..page.clone() }),
    )
    .await;
    timed(
        "failure counts by cause, with retried",
        s.failure_counts(Query { include_retried: true, ..page.clone() }, By::Cause),
    )
    .await;
    timed("resets", s.resets(page.clone())).await;
    timed("resets word=none such", s.resets(Query { words: one("x"), ..page.clone() })).await;
    let accuracy = timed("reset accuracy", s.reset_accuracy(page.clone())).await;
    assert_eq!(accuracy.iter().map(|row| row.selected).sum::<i64>(), rows / 10);
    let standing = timed("standing, last in line", s.standing(id(2 * rows - 1), T0)).await.unwrap();
    assert_eq!(
        (standing.ahead, standing.behind_hold),
        (10_000.min(u32::try_from(rows).unwrap()), 10_000.min(u32::try_from(rows).unwrap()))
    );
    timed("queues", s.queues(T0 + 3_600_000)).await;
    timed("usage by model", s.usage(page.clone(), UsageBy::Model)).await;
    timed("usage by label", s.usage(page.clone(), UsageBy::Label("env".into()))).await;
    let hour = Query { since_ms: Some(T0 + rows - rows / 20), ..page };
    timed("usage of a twentieth, by day", s.usage(hour, UsageBy::Day)).await;
    timed("histories of 500", s.histories((1..=500).map(id).collect())).await;
}
