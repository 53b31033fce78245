//! Every statement on a fresh database: it prepares, its columns are pinned, and no large table is walked.

use super::harness::{SqliteHarness, fresh};
use crate::conformance::*;
use reprieve::store::*;
use sqlx::{AssertSqlSafe, Column, Connection, Executor, Row, SqliteConnection, Statement};
use std::collections::BTreeMap;
use std::fmt::Write;

fn statements() -> BTreeMap<String, String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sql/sqlite");
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

async fn connect(h: &SqliteHarness) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap()
}

#[tokio::test]
async fn every_statement_prepares_and_has_its_columns_and_a_header() {
    let h = fresh().await;
    let mut conn = connect(&h).await;
    let mut all = String::new();
    for (name, text) in statements() {
        assert!(text.starts_with("-- "), "{name} says nothing of itself");
        assert_eq!(
            text.matches(';').count(),
            text.lines().filter(|line| line.starts_with("--") && line.contains(';')).count(),
            "{name} is one statement"
        );
        let prepared = conn
            .prepare(sqlx::SqlSafeStr::into_sql_str(AssertSqlSafe(text)))
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let columns: Vec<&str> = prepared.columns().iter().map(Column::name).collect();
        writeln!(all, "{name}: {}", columns.join(" ")).unwrap();
    }
    insta::assert_snapshot!(all);
}

/// Tables that may be walked whole: few rows, whatever the load; and what `json_each` and subqueries bring.
const SMALL: [&str; 12] = ["e", "g", "f", "w", "d", "c", "json_each", "wanted", "CONSTANT", "workers", "scopes", "s"];

/// Walks that are right, by statement.
const WALKS: &[(&str, &str)] = &[
    // Open holds are few; where the ended ones are asked for, they are the list.
    ("next_due", "holds"),
    ("overview", "holds"),
    ("overview", "h"),
    ("overview", "held"),
    ("holds", "h"),
    // The schema's own table; and turns, counted to 10,000, when somebody asks for a check.
    ("care_schema", "sqlite_schema"),
    ("care_state", "t"),
    // Scopes, under another name.
    ("hold", "x"),
    ("holds", "x"),
    ("queues", "held"),
    // Scopes, under another name.
    ("standing", "z"),
    // Paused queues are few.
    ("queues_paused", "queues"),
    // The tests of one reset, of which there are one or two.
    ("resets_shown", "a"),
    ("resets", "a"),
    // What SQLite would do for children of a new parent, were any waiting for it.
    ("lane_insert", "jobs"),
    ("scope_insert", "holds"),
];

/// Statements that sort, because their answer is a count, a batch of a bounded size, or of a few rows for each of theirs.
const SORTS: &[&str] = &["failure_counts", "histories_inbox", "histories_records", "resets", "resets_shown", "usage"];

/// What each statement of the hot path must use.
const USES: &[(&str, &[&str])] = &[
    ("claim_due", &["turns_later"]),
    ("claim_promote", &["turns_later", "PRIMARY KEY"]),
    ("claim_scopes", &["lanes_active (scope_id=?"]),
    ("claim_lanes", &["lanes_active (scope_id=?", "INTEGER PRIMARY KEY"]),
    (
        "claim_take",
        &["turns_ready (lane_id=?", "t USING PRIMARY KEY (job_id=?)", "j USING INDEX sqlite_autoindex_jobs_1"],
    ),
    ("claim_mark", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("turns_in_hand", &["t USING PRIMARY KEY (job_id=?)"]),
    ("turns_put_back", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("turns_delete", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("jobs_end", &["jobs USING INDEX sqlite_autoindex_jobs_1 (job_id=?)"]),
    ("rescue_turns", &["turns_running (worker_no=?"]),
    ("expire", &["turns_deadline (deadline_ms>", "r USING INDEX sqlite_autoindex_turn_records_1 (job_id=?)"]),
    ("next_due", &["turns_later (due_ms>?)", "turns_deadline", "workers_there", "schedules_next (next_ms>?)"]),
    ("submit_keys", &["jobs_key (key_tenant=? AND key=?)"]),
    ("retries", &["jobs_retry_of (retry_of=?)"]),
    ("inbox_waiting", &["i EXISTS USING PRIMARY KEY (job_id=? AND seq>?)"]),
    ("inbox_defer", &["inbox USING PRIMARY KEY (job_id=? AND seq=?)"]),
    ("inbox_posted", &["inbox_key (job_id=? AND key=?)"]),
    (
        "post_job",
        &["j USING INDEX sqlite_autoindex_jobs_1", "t USING PRIMARY KEY", "i USING PRIMARY KEY (job_id=? AND seq>?)"],
    ),
    ("steer_jobs", &["j USING INDEX sqlite_autoindex_jobs_1", "t USING PRIMARY KEY"]),
    ("steer_pause", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("steer_requeue", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("steer_priority_turns", &["turns USING PRIMARY KEY (job_id=?)"]),
    ("steer_priority_jobs", &["jobs USING INDEX sqlite_autoindex_jobs_1 (job_id=?)"]),
    ("schedules_due", &["schedules_next (next_ms>? AND next_ms<?)"]),
    ("fire_live", &["jobs_scheduled_live (schedule_id=?)"]),
    ("fire_prune", &["schedule_runs USING PRIMARY KEY (schedule_id=? AND nominal_ms<?)"]),
    ("rescue_workers", &["workers_there"]),
    ("prune_workers", &["workers_ended"]),
    ("failures", &["turn_records_failed (", "sends_ended ("]),
    ("results", &["jobs_ended (ended_no>?)"]),
    (
        "resets",
        &[
            "reset_evidence_received (",
            "COVERING INDEX sends_tests",
            "COVERING INDEX turn_records_tests",
            "hold_events_refusal (job_id=?",
        ],
    ),
    ("resets_shown", &["e USING PRIMARY KEY (job_id=?", "COVERING INDEX sends_tests", "hold_events_refusal (job_id=?"]),
    ("jobs", &["j USING INDEX sqlite_autoindex_jobs_1 (job_id<?)", "t USING PRIMARY KEY"]),
    ("job_ids", &["COVERING INDEX sqlite_autoindex_jobs_1 (job_id>? AND job_id<?)"]),
    ("jobs_live", &["t USING PRIMARY KEY (job_id<?)", "holds_open (scope_id=?)"]),
    ("jobs_failed", &["jobs_failed (job_id<?)"]),
    ("jobs_labelled", &["labels_value (key=? AND value=? AND job_id<?)"]),
    ("jobs_scheduled", &["jobs_scheduled (schedule_id=? AND job_id<?)"]),
    ("jobs_by_end", &["jobs_kept (pruned=? AND finished_ms>?"]),
    ("label_count", &["labels_value (key=? AND value=?)"]),
    ("failure_counts", &["turn_records_failed (ended_ms>? AND ended_ms<?)", "sends_ended (ended_ms>? AND ended_ms<?)"]),
    ("usage", &["COVERING INDEX turn_records_ended (ended_ms>? AND ended_ms<?)"]),
    (
        "standing",
        &[
            "t USING PRIMARY KEY (job_id=?)",
            "turns_ready (lane_id=? AND (rank_ms,job_id)<(?,?))",
            "lanes_active (scope_id=?)",
        ],
    ),
    ("hold", &["d USING PRIMARY KEY (job_id=? AND fence=? AND n=?)", "r USING INDEX sqlite_autoindex_turn_records_1"]),
    ("holds", &["d USING PRIMARY KEY (job_id=? AND fence=? AND n=?)", "r USING INDEX sqlite_autoindex_turn_records_1"]),
    ("standing_fails_with", &["turn_records USING INDEX sqlite_autoindex_turn_records_1 (job_id=?)"]),
    ("standing_failure", &["turn_records USING INDEX sqlite_autoindex_turn_records_1 (job_id=?)"]),
    ("standing_sends", &["x USING PRIMARY KEY (job_id=? AND fence=?)", "e USING PRIMARY KEY (job_id=?"]),
    (
        "queues",
        &[
            "COVERING INDEX jobs_kept (pruned=? AND finished_ms>?)",
            "COVERING INDEX turns_later",
            "turns_ready (lane_id=?)",
        ],
    ),
    ("hold_events", &["hold_events_hold (hold_id=?)"]),
    ("histories_records", &["r USING INDEX sqlite_autoindex_turn_records_1 (job_id=?)"]),
    ("histories_inbox", &["i USING PRIMARY KEY (job_id=?)"]),
];

/// What is wrong with the plans, by statement.
async fn wrong_plans(conn: &mut SqliteConnection) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, text) in statements() {
        let explained = format!("EXPLAIN QUERY PLAN {text}");
        let rows = sqlx::query(AssertSqlSafe(explained)).fetch_all(&mut *conn).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get::<String, _>(3)).collect();
        for step in &plan {
            let walked = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            if let Some(table) = walked {
                let right = SMALL.contains(&table)
                    || table.starts_with('(')
                    || step.contains("USING INDEX")
                    || step.contains("USING COVERING INDEX")
                    || WALKS.contains(&(name.as_str(), table));
                if !right {
                    wrong.push(format!("{name} walks {table}: {plan:#?}"));
                }
            }
        }
        if let Some((_, uses)) = USES.iter().find(|(hot, _)| *hot == name) {
            for used in uses.iter().filter(|used| !plan.iter().any(|step| step.contains(**used))) {
                wrong.push(format!("{name} does not use {used}: {plan:#?}"));
            }
            let sorts = plan.iter().any(|step| step.contains("USE TEMP B-TREE FOR ORDER BY"));
            if sorts && !SORTS.contains(&name.as_str()) {
                wrong.push(format!("{name} sorts: {plan:#?}"));
            }
        }
    }
    wrong
}

#[tokio::test]
async fn no_statement_walks_a_large_table_whatever_the_statistics() {
    let h = fresh().await;
    let mut conn = connect(&h).await;
    assert_eq!(wrong_plans(&mut conn).await, Vec::<String>::new(), "empty");

    wide(&h, &["m", "n"]).await;
    let mut new = [jobs("m", 2_000), jobs("n", 500)].concat();
    for (n, job) in new.iter_mut().enumerate() {
        job.lane.tenant = format!("t{}", n % 50);
        job.due_ms = (n % 3 == 0).then_some(T0 + 1_000);
        job.deadline_ms = (n % 5 == 0).then_some(T0 + 1_000_000);
        job.labels = vec![("k".into(), format!("{}", n % 7))];
        job.idempotency_key = (n % 2 == 0).then(|| format!("{n}"));
    }
    submit(&h, new).await;
    let w = worker(&h, T0).await;
    for round in 0..10 {
        let turns = claim(&h, w, 100, T0 + round).await;
        let ends = turns
            .iter()
            .enumerate()
            .map(|(n, turn)| match n % 10 {
                0 => requeued(w, turn, T0 + round, T0 + 5_000),
                1 if round == 9 => deferred(w, turn, T0 + round, T0 + 9_000),
                _ => success(w, turn, T0 + round),
            })
            .collect();
        h.store().complete(ends).await.unwrap();
    }
    let mut conn = connect(&h).await;
    assert_eq!(wrong_plans(&mut conn).await, Vec::<String>::new(), "filled, without statistics");
    conn.execute("ANALYZE").await.unwrap();
    let mut conn = connect(&h).await;
    assert_eq!(wrong_plans(&mut conn).await, Vec::<String>::new(), "analysed");
}
