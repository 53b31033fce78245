//! Every statement on a fresh database: it prepares, its columns are pinned, and no large table is walked.

use super::harness::fresh;
use reprieve::store::postgres::OpenOptions;
use sqlx::{AssertSqlSafe, Column, Executor, PgConnection, Row, SqlSafeStr, Statement};
use std::collections::BTreeMap;
use std::fmt::Write;

fn statements() -> BTreeMap<String, String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sql/postgres");
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn every_statement_prepares_and_has_its_columns_and_a_header() {
    let h = fresh().await;
    let mut conn = h.connect().await;
    let mut all = String::new();
    for (name, text) in statements() {
        assert!(text.starts_with("-- "), "{name} says nothing of itself");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<String>();
        assert!(!code.contains(';'), "{name} is one statement");
        let prepared =
            (&mut conn).prepare(AssertSqlSafe(text).into_sql_str()).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let columns: Vec<&str> = prepared.columns().iter().map(Column::name).collect();
        writeln!(all, "{name}: {}", columns.join(" ")).unwrap();
    }
    insta::assert_snapshot!(all);
}

/// Tables that may be walked whole: few rows, whatever the load.
const SMALL: [&str; 5] = ["workers", "scopes", "queues", "schedules", "counters"];

/// Walks that are right, by statement: counting everything is looking at everything.
const WALKS: &[(&str, &str)] = &[("overview", "holds")];

/// What each statement of the hot path, and each list, must use; a `!` is what its plan must not have.
const USES: &[(&str, &[&str])] = &[
    ("claim_look", &["turns_later", "workers_worker_id_key"]),
    ("claim_promote", &["turns_later", "turns_pkey"]),
    ("claim_scopes", &["lanes_active"]),
    ("claim_lanes", &["lanes_active", "!Sort"]),
    ("claim_take", &["turns_ready", "jobs_pkey", "!Sort"]),
    ("claim_mark", &["turns_pkey"]),
    ("ledger_lock", &["turns_pkey", "lanes_pkey", "scopes_pkey"]),
    ("ledger_holds", &["holds_open"]),
    ("turns_in_hand", &["turns_pkey", "lanes_pkey"]),
    ("turns_put_back", &["turns_pkey"]),
    ("turns_lock", &["turns_pkey"]),
    ("steer_pause", &["turns_pkey"]),
    ("steer_requeue", &["turns_pkey"]),
    ("steer_priority_turns", &["turns_pkey"]),
    ("steer_priority_jobs", &["jobs_pkey"]),
    ("delete_lock", &["jobs_pkey"]),
    ("post_turn", &["turns_pkey"]),
    ("post_behind", &["inbox_pkey"]),
    ("inbox_waiting", &["inbox_pkey"]),
    ("inbox_defer", &["inbox_pkey"]),
    ("turns_delete", &["turns_pkey"]),
    ("jobs_end", &["jobs_pkey"]),
    ("lanes_ready", &["lanes_pkey"]),
    ("lanes_served", &["lanes_pkey"]),
    ("rescue_turns", &["turns_running"]),
    ("expire", &["turns_deadline", "turn_records_pkey"]),
    ("next_due", &["turns_later", "turns_deadline"]),
    ("parked", &["turns_parked"]),
    ("submit_keys", &["jobs_key"]),
    ("submit_again", &["jobs_pkey"]),
    ("retries", &["jobs_retry_of"]),
    // Both start with the schedule; on a table without rows one is as good as the other.
    ("fire_live", &["jobs_scheduled_live|jobs_scheduled"]),
    ("fire_run", &["schedule_runs_pkey", "jobs_pkey", "turns_pkey"]),
    ("lanes_find", &["lanes_scope_id_queue_tenant_key"]),
    ("retries", &["jobs_retry_of"]),
    ("schedules_due", &["schedules_next"]),
    ("schedule_runs", &["schedule_runs_pkey", "jobs_pkey", "turns_pkey"]),
    ("jobs", &["jobs_pkey", "turns_pkey", "!Sort"]),
    ("jobs_live", &["turns_pkey", "jobs_pkey", "holds_open", "!Sort"]),
    ("jobs_failed", &["jobs_failed", "!Sort"]),
    ("jobs_labelled", &["labels_value", "jobs_pkey", "!Sort"]),
    ("jobs_scheduled", &["jobs_scheduled", "!Sort"]),
    ("jobs_by_end", &["jobs_kept", "!Sort"]),
    ("label_count", &["labels_value"]),
    ("results", &["jobs_ended", "!Sort"]),
    ("failures", &["turn_records_failed", "sends_ended"]),
    ("failure_counts", &["turn_records_failed", "sends_ended"]),
    ("resets", &["reset_evidence_received", "sends_tests", "turn_records_tests", "hold_events_refusal"]),
    ("resets_shown", &["reset_evidence_pkey", "sends_tests", "turn_records_tests", "hold_events_refusal"]),
    ("usage", &["turn_records_ended"]),
    ("queues", &["lanes_active", "turns_ready", "turns_running", "turns_later", "turns_paused", "jobs_kept"]),
    ("standing", &["turns_pkey", "turns_ready", "lanes_active", "turns_running"]),
    ("standing_failure", &["turn_records_pkey", "!Sort"]),
    ("standing_sends", &["sends_pkey", "reset_evidence_pkey", "!Sort"]),
    ("hold_events", &["hold_events_hold", "!Sort"]),
    ("histories_records", &["turn_records_pkey"]),
    ("histories_inbox", &["inbox_pkey"]),
    ("turn_records", &["turn_records_pkey"]),
    ("turn_sends", &["turn_records_pkey", "sends_pkey"]),
    ("labels", &["labels_pkey"]),
];

/// What is wrong with the plans, by statement: those that are used whatever the arguments.
async fn wrong_plans(conn: &mut PgConnection) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, text) in statements() {
        conn.execute(AssertSqlSafe(format!("PREPARE plan AS {text}"))).await.unwrap();
        let of = "SELECT coalesce(cardinality(parameter_types), 0) FROM pg_prepared_statements WHERE name = 'plan'";
        let count: i32 = sqlx::query_scalar(of).fetch_one(&mut *conn).await.unwrap();
        let nulls = vec!["NULL"; usize::try_from(count).unwrap()].join(", ");
        let args = if count == 0 { String::new() } else { format!("({nulls})") };
        let explained = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE plan{args}")));
        let plan: Vec<String> = explained.fetch_all(&mut *conn).await.unwrap().iter().map(|row| row.get(0)).collect();
        conn.execute("DEALLOCATE plan").await.unwrap();
        for step in &plan {
            let walked = step.split("Seq Scan on ").nth(1).and_then(|rest| rest.split(' ').next());
            if let Some(table) =
                walked.filter(|table| !SMALL.contains(table) && !WALKS.contains(&(name.as_str(), table)))
            {
                wrong.push(format!("{name} walks {table}: {plan:#?}"));
            }
        }
        let uses = USES.iter().find(|(hot, _)| *hot == name).map_or(&[][..], |(_, uses)| *uses);
        for used in uses {
            let (index, there) = used.strip_prefix('!').map_or((*used, true), |index| (index, false));
            let has =
                plan.iter().any(|step| step.split(['(', ' ']).any(|word| index.split('|').any(|one| one == word)));
            if has != there {
                wrong.push(format!("{name}: {used}: {plan:#?}"));
            }
        }
    }
    wrong
}

/// Of each kind enough that a walk would be felt; a lane in ten thousand has something ready.
const FILL: &[&str] = &[
    "INSERT INTO scopes (provider, account, model) VALUES ('p', 'a', '')",
    "INSERT INTO scopes (provider, account, model, account_id) SELECT 'p', 'a', 'm' || n, 1 FROM generate_series(1, 20) AS n",
    "INSERT INTO lanes (queue, tenant, scope_id, ready)
     SELECT 'q', 't' || n, 2 + n % 20, CASE WHEN n % 10 = 0 THEN 12 ELSE 0 END FROM generate_series(1, 10000) AS n",
    "INSERT INTO jobs (job_id, lane_id, created_ms, priority, entry, digest, spec, state, finished_ms, ended_no, error,
                       schedule_id)
     SELECT lpad(to_hex(n), 32, '0')::uuid, 1 + n % 10000, n, 0, 'e', 'd', '{}',
            CASE WHEN n > 120000 THEN CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END END,
            CASE WHEN n > 120000 THEN n END, CASE WHEN n > 120000 THEN n END,
            CASE WHEN n > 120000 AND n % 50 = 0 THEN '{\"code\": \"worker_lost\"}' END,
            CASE WHEN n % 20 = 0 THEN lpad(to_hex(n % 7), 32, '0')::uuid END
     FROM generate_series(1, 200000) AS n",
    "INSERT INTO turns (job_id, lane_id, rank_ms, due_ms, deadline_ms, seq, priority, state)
     SELECT job_id, lane_id, created_ms, CASE WHEN created_ms % 3 = 0 THEN created_ms END,
            CASE WHEN created_ms % 5 = 0 THEN created_ms END, 1, 0, CASE WHEN created_ms % 3 = 0 THEN 1 ELSE 0 END
     FROM jobs WHERE state IS NULL",
    "INSERT INTO turn_records (job_id, fence, seq, started_ms, ended_ms, outcome)
     SELECT job_id, created_ms, 1, created_ms, created_ms, CASE WHEN created_ms % 9 = 0 THEN 'failed' ELSE 'completed' END
     FROM jobs WHERE state IS NOT NULL",
    "INSERT INTO sends (job_id, fence, n, seq, permit_ms, started_ms, ended_ms, outcome)
     SELECT job_id, fence, 1, 1, 0, 0, ended_ms, 'refused' FROM turn_records WHERE outcome = 'failed'",
    "INSERT INTO reset_evidence
     SELECT job_id, fence, 1, ended_ms, NULL, NULL, 0, 1, NULL, NULL, NULL, NULL, 'rate_limit', NULL, '[]', '{}', '{}', '{}', 1
     FROM sends",
    "INSERT INTO holds (hold_id, scope_id, opened_ms, dated_no, ended_ms, \"end\", cause, source)
     SELECT lpad(to_hex(n), 32, '0')::uuid, 2 + n % 20, n, n, n, 'released', 'rate_limit', 'retry-after'
     FROM generate_series(1, 2000) AS n",
    "INSERT INTO hold_events (hold_id, at_ms, barren, job_id, fence, n, event)
     SELECT lpad(to_hex(1 + fence % 2000), 32, '0')::uuid, ended_ms, 0, job_id, fence, n, 'opened' FROM sends",
    "INSERT INTO labels SELECT job_id, 'k', (created_ms % 100)::text FROM jobs",
];

async fn right_plans(conn: &mut PgConnection, when: &str) {
    let wrong = wrong_plans(conn).await;
    assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn no_statement_walks_a_large_table_whatever_the_statistics() {
    let h = fresh().await;
    let mut conn = h.connect().await;
    let script = OpenOptions { schema: h.schema.clone(), ..OpenOptions::default() }.settings_of_a_session();
    conn.execute(AssertSqlSafe(script)).await.unwrap();
    right_plans(&mut conn, "empty").await;
    for fill in FILL {
        conn.execute(*fill).await.unwrap();
    }
    right_plans(&mut conn, "filled, without statistics").await;
    conn.execute("ANALYZE").await.unwrap();
    right_plans(&mut conn, "analysed").await;
}
