//! A stopped queue moves from one database to the other and back, whole: whatever is killed meanwhile, and only where
//! nothing else stands.

use super::cluster::shared;
use super::harness::{connect, fresh, options, schema};
use crate::conformance::*;
use crate::sqlite::harness::{fresh as fresh_sqlite, open};
use reprieve::clock::Clock;
use reprieve::store::postgres::migrate;
use reprieve::store::sqlite::OpenOptions;
use reprieve::store::transfer::{self, Ending, Error, Kind, OWN, Place, Report, TABLES};
use reprieve::store::*;
use sqlx::{Connection, Row, SqliteConnection};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// Long after every lease of a test has lapsed.
const LATER: i64 = T0 + 10 * LEASE_MS;

fn file(path: &Path) -> Place {
    Place::Sqlite { url: format!("sqlite://{}", path.display()) }
}

/// A schema of its own, with nothing in it.
async fn empty() -> (Place, String) {
    let (url, schema) = (shared().url(), schema());
    migrate::up(&url, &options(&schema)).await.unwrap();
    (Place::Postgres { url, options: options(&schema) }, schema)
}

async fn moved(from: &Place, to: &Place) -> Report {
    transfer::run(from, to, Some(LATER), &|_| ()).await.unwrap()
}

async fn refused(from: &Place, to: &Place, now_ms: i64) -> String {
    match transfer::run(from, to, Some(now_ms), &|_| ()).await {
        Err(Error::Refused(why)) => why,
        Err(Error::Store { error, .. }) => error.to_string(),
        Ok(report) => panic!("{report:?}"),
    }
}

fn schedule(name: &str) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::fresh(),
        name: name.into(),
        cron: "* * * * *".into(),
        zone: "Europe/Berlin".into(),
        spec: "{\"model\":\"m\"}".into(),
        catch_up: CatchUp::Last,
        overlap: Overlap::Queue,
        next_ms: Some(T0 + 60_000),
        created_ms: T0,
    }
}

/// Turns in every state but in hand, holds of every kind, texts of every kind: what both databases can do.
async fn work<H: Harness>(h: &H) -> Vec<JobId> {
    wide(h, &["m", "n"]).await;
    let mut new = [jobs("m", 9), jobs("n", 3)].concat();
    new[0].labels = vec![("team".into(), "a".into()), ("odd\u{1a}".into(), "a mark \u{1a}0 é \u{1d11e}".into())];
    new[1].idempotency_key = Some("once".into());
    new[1].spec = format!("{{\"model\":\"m\",\"input\":\"\\u0000 {} İ\"}}", "long ".repeat(3_000));
    new[2].lane.tenant = "t\u{1a}".into();
    new[3].priority = 7;
    new[4].deadline_ms = Some(T0 + 100_000);
    new[8].due_ms = Some(T0 + 50_000);
    let ids = submit(h, new).await;
    let w = worker(h, T0).await;
    let turns = claim(h, w, 8, T0).await;
    assert_eq!(turns.len(), 8);
    complete_one(h, success(w, &turns[0], T0 + 1)).await;
    complete_one(h, requeued(w, &turns[1], T0 + 2, T0 + 90_000)).await;
    complete_one(h, cut(w, &turns[2], T0 + 3)).await;
    h.store().set_back(setback(w, &turns[3], 1, T0 + 4, T0 + 500)).await.unwrap();
    complete_one(h, deferred(w, &turns[3], T0 + 5, T0 + 70_000)).await;
    let mut odd = failed_record(&turns[4], Outcome::Failed, "provider_error", T0 + 6);
    odd.error = Some("{\"code\":\"model_incomplete\",\"message\":\"model_error: \\u0000\"}".into());
    odd.provider_code = Some("\0".into());
    let end = Next::Final { state: JobState::Failed, result: None, error: odd.error.clone() };
    complete_one(h, Completion { record: odd, answered: false, next: end, ..success(w, &turns[4], T0 + 6) }).await;
    h.store().cancel(vec![turns[5].job_id], T0 + 7).await.unwrap();
    complete_one(h, success(w, &turns[5], T0 + 8)).await;
    h.store().give_back(w, turns[6..].iter().map(|turn| (turn.job_id, turn.fence)).collect(), T0 + 9).await.unwrap();
    h.store().cancel(vec![ids[11]], T0 + 10).await.unwrap();
    h.store().retire_worker(w, T0 + 11).await.unwrap();
    ids
}

/// And what people do.
async fn steering<H: Harness>(h: &H, ids: &[JobId]) {
    let id = schedule("nightly").id;
    let new = NewSchedule { id, ..schedule("nightly") };
    assert_eq!(h.store().add_schedule(new).await.unwrap(), Scheduled::Added(id));
    let firing = Firing { nominal_ms: T0 + 60_000, what: FiringKind::Submit(Box::new(job("m"))) };
    let fire = Fire {
        schedule: id,
        expected_next_ms: Some(T0 + 60_000),
        next_ms: Some(T0 + 120_000),
        firings: vec![firing],
        now_ms: T0 + 60_007,
    };
    assert!(matches!(h.store().fire(fire).await.unwrap(), Fired::Done(_)));
    assert!(h.store().pause_schedule(id, Some(pause()), None).await.unwrap());
    h.store().pause_queue("quiet".into(), Some(pause())).await.unwrap();
    let close = HoldClose { scope: scope("n"), until_ms: None, by: "ops".into(), reason: None, now_ms: T0 + 12 };
    h.store().close_scope(close).await.unwrap();
    let waiting = ids[10];
    post(h, waiting, Some("p"), &["\"told \\u0000\""]).await;
    steer(h, &[waiting], Steer::Pause(pause()), T0 + 13).await;
    let failed = h.store().jobs(Query { states: vec!["failed".into()], ..Query::default() }).await.unwrap();
    submit(h, vec![NewJob { retry_of: Some(failed.items[0].id), ..job("m") }]).await;
}

/// Everything that is seen of a queue, through the seam.
async fn picture<S: Store>(store: &S) -> String {
    let all = || Query { limit: 1_000, include_ended: true, include_retried: true, now_ms: LATER, ..Query::default() };
    let jobs = store.jobs(all()).await.unwrap().items;
    let mut seen = vec![format!("{jobs:#?}")];
    for job in &jobs {
        seen.push(format!("{:#?}", store.turns(job.id).await.unwrap()));
        seen.push(format!("{:#?}", store.history(job.id).await.unwrap()));
    }
    seen.push(format!("{:#?}", store.results(all()).await.unwrap().items));
    seen.push(format!("{:#?}", store.failures(all()).await.unwrap().items));
    seen.push(format!("{:#?}", store.resets(all()).await.unwrap().items));
    seen.push(format!("{:#?}", store.holds(all()).await.unwrap()));
    seen.push(format!("{:#?}", store.overview(LATER).await.unwrap()));
    seen.extend([
        format!("{:#?}", store.schedules().await.unwrap()),
        format!("{:#?}", store.queues(LATER).await.unwrap()),
        format!("{:#?}", store.reset_accuracy(all()).await.unwrap()),
    ]);
    for by in [UsageBy::Model, UsageBy::Tenant, UsageBy::Day, UsageBy::Label("team".into())] {
        seen.push(format!("{:#?}", store.usage(all(), by).await.unwrap()));
    }
    for hold in store.holds(all()).await.unwrap() {
        seen.push(format!("{:#?}", store.hold_events(hold.id).await.unwrap()));
    }
    for job in &jobs {
        // Workers stay where they are, and so does when one was seen.
        let standing = store.standing(job.id, LATER).await.unwrap();
        seen.push(format!("{:#?}", standing.map(|standing| Standing { worker_seen_ms: None, ..standing })));
    }
    seen.join("\n")
}

fn same(one: &str, other: &str) {
    for (place, (a, b)) in one.lines().zip(other.lines()).enumerate() {
        assert_eq!(a, b, "line {place}");
    }
    assert_eq!(one.lines().count(), other.lines().count());
}

#[tokio::test]
async fn everything_goes_there_and_comes_back() {
    let h = fresh_sqlite().await;
    let ids = work(&h).await;
    steering(&h, &ids).await;
    let fence_before = claims_next(h.store()).await;
    let seen = picture(h.store()).await;
    h.store().close().await;
    let (there, name) = empty().await;
    let report = moved(&file(&h.path()), &there).await;
    assert_eq!((report.outcome, report.resumed), (Ending::Moved, false), "{report:?}");
    for table in &report.tables {
        assert!(table.source.rows > 0, "the test puts nothing into {}", table.name);
    }
    let pg = Postgres::open(&shared().url(), Clock::manual(T0), options(&name)).await.unwrap();
    same(&seen, &picture(&pg).await);
    pg.close().await;
    let mut conn = connect(&shared().url(), &name).await;
    let filters = "SELECT count(*) FROM reset_evidence WHERE candidate_kinds = '{header}'
                   AND candidate_names = '{retry-after}' AND candidate_verdicts = '{selected}'";
    let evidence: i64 = sqlx::query_scalar("SELECT count(*) FROM reset_evidence").fetch_one(&mut conn).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(filters).fetch_one(&mut conn).await.unwrap(), evidence);
    assert_eq!(migrate::differences(&shared().url(), &options(&name)).await.unwrap(), Vec::<String>::new());

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("back.db");
    assert_eq!(moved(&there, &file(&path)).await.outcome, Ending::Moved);
    let back = open(&path, OpenOptions::default()).await.unwrap();
    same(&seen, &picture(&back).await);
    // Numbers go on beyond every one that was drawn, and work goes on.
    assert!(claims_next(&back).await > fence_before);
    back.close().await;
    // What was done is done, and said to be so.
    let twice = dir.path().join("twice.db");
    assert_eq!(moved(&there, &file(&twice)).await.outcome, Ending::Moved);
    assert_eq!(moved(&there, &file(&twice)).await.outcome, Ending::AlreadyThere);
    // The file of a moved queue has nothing of the move in it.
    let url = format!("sqlite://{}", twice.display());
    assert_eq!(sqlite::care::differences(&url).await.unwrap(), Vec::<String>::new());
}

/// The number that the next claim draws.
async fn claims_next<S: Store>(store: &S) -> i64 {
    let id = WorkerId::fresh();
    let row = WorkerRow {
        id,
        queues: Vec::new(),
        started_ms: LATER,
        heartbeat_ms: LATER,
        lease_ms: LEASE_MS,
        concurrency: 1,
    };
    store.register_worker(row).await.unwrap();
    let turns = store
        .claim(ClaimRequest { worker: id, queues: Vec::new(), without: Vec::new(), room: 1, now_ms: LATER })
        .await
        .unwrap();
    let fence = turns[0].fence.0;
    store.give_back(id, turns.iter().map(|turn| (turn.job_id, turn.fence)).collect(), LATER).await.unwrap();
    store.retire_worker(id, LATER).await.unwrap();
    fence
}

#[tokio::test]
async fn a_queue_of_postgres_goes_to_a_file_and_to_another_schema() {
    let h = fresh().await;
    let ids = work(&h).await;
    steering(&h, &ids).await;
    let next = claims_next(h.store()).await;
    let seen = picture(h.store()).await;
    h.store().close().await;
    let from = Place::Postgres { url: h.url.clone(), options: options(&h.schema) };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    assert_eq!(moved(&from, &file(&path)).await.outcome, Ending::Moved);
    let store = open(&path, OpenOptions::default()).await.unwrap();
    same(&seen, &picture(&store).await);
    assert!(claims_next(&store).await > next);
    store.close().await;
    let (there, name) = empty().await;
    assert_eq!(moved(&from, &there).await.outcome, Ending::Moved);
    let pg = Postgres::open(&shared().url(), Clock::manual(T0), options(&name)).await.unwrap();
    same(&seen, &picture(&pg).await);
    assert!(claims_next(&pg).await > next);
    // Its own numbers go on, too.
    submit(&super::harness::PgHarness { store: pg, url: h.url.clone(), schema: name }, jobs("new", 1)).await;
}

#[tokio::test]
async fn a_queue_at_work_is_not_moved() {
    let h = fresh_sqlite().await;
    wide(&h, &["m"]).await;
    submit(&h, jobs("m", 2)).await;
    let w = worker(&h, T0).await;
    let turns = claim(&h, w, 1, T0).await;
    h.store().close().await;
    let (there, _) = empty().await;
    let why = refused(&file(&h.path()), &there, T0 + 9_000).await;
    assert!(why.contains("is at work: stop every `serve` and `worker`") && why.contains(&w.to_string()), "{why}");
    assert!(why.contains("9.0 s ago"), "{why}");
    let why = refused(&file(&h.path()), &there, LATER).await;
    assert!(why.starts_with("1 turns of ") && why.contains("start `reprieve worker` on it"), "{why}");
    let store = open(&h.path(), OpenOptions::default()).await.unwrap();
    store.give_back(w, turns.iter().map(|turn| (turn.job_id, turn.fence)).collect(), T0 + 1).await.unwrap();
    store.close().await;
    // Nothing had been written there.
    assert_eq!(moved(&file(&h.path()), &there).await.outcome, Ending::Moved);
}

#[tokio::test]
async fn a_target_that_holds_something_else_is_left_as_it_is() {
    let h = fresh_sqlite().await;
    work(&h).await;
    h.store().close().await;
    let from = file(&h.path());
    let why = refused(&from, &from, LATER).await;
    assert!(why.contains("is both the source and the target"), "{why}");
    let other = fresh().await;
    submit(&other, jobs("m", 3)).await;
    let to = Place::Postgres { url: other.url.clone(), options: options(&other.schema) };
    let before = picture(other.store()).await;
    let why = refused(&from, &to, LATER).await;
    assert!(why.contains("is not empty (3 rows in `") && why.contains("left as it is"), "{why}");
    same(&before, &picture(other.store()).await);
    let none = Place::Postgres { url: shared().url(), options: options(&schema()) };
    let why = refused(&from, &none, LATER).await;
    assert!(why.contains("is not there; run `reprieve migrate up`"), "{why}");
    let nowhere = file(&h.path().with_file_name("nothing.db"));
    let why = refused(&nowhere, &to, LATER).await;
    assert!(why.contains("the file does not exist") && !h.path().with_file_name("nothing.db").exists(), "{why}");
}

#[tokio::test]
async fn an_older_schema_is_not_moved() {
    let h = fresh_sqlite().await;
    h.store().close().await;
    let mut conn = SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap();
    sqlx::query("PRAGMA user_version = 1").execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let (there, _) = empty().await;
    let why = refused(&file(&h.path()), &there, LATER).await;
    assert!(why.contains("its schema has version 1") && why.contains("run `reprieve migrate up` on it"), "{why}");
    let why = refused(&there, &file(&h.path()), LATER).await;
    assert!(why.contains("its schema has version 1"), "{why}");
}

/// Every column of either schema is moved, or known to be computed.
#[tokio::test]
async fn no_column_is_forgotten() {
    let listed: BTreeSet<String> = TABLES
        .iter()
        .flat_map(|table| table.columns().map(|column| format!("{}.{}", table.name, column.name)))
        .collect();
    let left = ["workers", "counters", "schema_migrations", "all_sends"];
    let h = fresh_sqlite().await;
    let mut conn = SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap();
    let of_file = "SELECT m.name, c.name, c.type FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS c
                   WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let of_file: Vec<(String, String, String)> = sqlx::query_as(of_file).fetch_all(&mut conn).await.unwrap();
    let (_, schema) = empty().await;
    let mut pg = connect(&shared().url(), &schema).await;
    let of_schema = sqlx::query(
        "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = $1",
    );
    let of_schema = of_schema.bind(&schema).fetch_all(&mut pg).await.unwrap();
    let of_schema: Vec<(String, String, String)> =
        of_schema.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    for (database, columns) in [("sqlite", of_file), ("postgres", of_schema)] {
        let mut found = BTreeSet::new();
        for (table, column, kind) in columns.into_iter().filter(|(table, ..)| !left.contains(&table.as_str())) {
            let name = format!("{table}.{column}");
            if OWN.contains(&format!("{database} {name}").as_str()) {
                continue;
            }
            let held = TABLES.iter().find(|one| one.name == table);
            let held = held.and_then(|one| one.columns().find(|one| one.name == column));
            let held = held.unwrap_or_else(|| panic!("{database}: nobody moves {name}")).kind;
            let kinds: &[&str] = match held {
                Kind::Id => &["BLOB", "uuid"],
                Kind::Int => &["INTEGER", "bigint", "smallint"],
                Kind::Text => &["TEXT", "text"],
            };
            assert!(kinds.contains(&kind.as_str()), "{database}: {name} is {kind}");
            found.insert(name);
        }
        assert_eq!(found, listed, "{database}");
    }
}

/// A queue of some thousand jobs with their records.
async fn many<H: Harness>(h: &H, n: usize) {
    wide(h, &["m"]).await;
    let w = worker(h, T0).await;
    for _ in 0..n / 1_000 {
        let new = (0..1_000).map(|_| NewJob { labels: vec![("a".into(), "b".into())], ..job("m") }).collect();
        submit(h, new).await;
    }
    for _ in 0..n / 2_000 {
        let turns = claim(h, w, 1_000, T0).await;
        h.store().complete(turns.iter().map(|turn| success(w, turn, T0 + 1)).collect()).await.unwrap();
    }
    h.store().retire_worker(w, T0 + 1).await.unwrap();
}

/// Rows that have been moved, as a look from outside finds them.
async fn come(url: &str, schema: &str) -> i64 {
    let mut conn = connect(url, schema).await;
    // There is no such table before the move begins.
    sqlx::query_scalar("SELECT sum(moved)::bigint FROM transfer").fetch_one(&mut conn).await.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_it_comes_to_its_end() {
    let h = fresh_sqlite().await;
    many(&h, 8_000).await;
    h.store().close().await;
    let (from, url) = (format!("sqlite://{}", h.path().display()), shared().url());
    let (there, schema) = empty().await;
    let child = || {
        Command::new(env!("CARGO_BIN_EXE_reprieve"))
            .args(["move", "--from", &from, "--to", &url, "--json"])
            .env("REPRIEVE__POSTGRES__SCHEMA", &schema)
            .current_dir(h.path().parent().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut kills = 0;
    let mut before = 0;
    let output = loop {
        let mut running = child();
        let ended = loop {
            if running.try_wait().unwrap().is_some() {
                break true;
            }
            // As soon as it has come further than its predecessor.
            let now = come(&url, &schema).await;
            if kills < 6 && now > before {
                before = now;
                running.kill().unwrap();
                running.wait().unwrap();
                break false;
            }
            tokio::task::yield_now().await;
        };
        if ended {
            break running.wait_with_output().unwrap();
        }
        kills += 1;
        // Half a queue is opened by nobody.
        if let Err(error) = Postgres::open(&url, Clock::manual(T0), options(&schema)).await {
            assert!(error.to_string().contains("a move into it has not come to its end"), "{error}");
        } else {
            assert_eq!(come(&url, &schema).await, 0);
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| {
        panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr));
    });
    assert!(kills >= 3, "{kills}");
    assert_eq!((&report["outcome"], &report["resumed"]), (&"moved".into(), &true.into()), "{report:#}");
    assert_eq!(moved(&file(&h.path()), &there).await.outcome, Ending::AlreadyThere);
}

#[tokio::test]
async fn what_changed_between_two_runs_is_found_out() {
    let h = fresh_sqlite().await;
    many(&h, 4_000).await;
    h.store().close().await;
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (file(&h.path()), file(&dir.path().join("there.db")));
    // Given up once the jobs are there; what was committed stays.
    let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
    {
        let tell = |step: transfer::Step| {
            // Nobody may listen any more.
            let _ = told.send(step);
        };
        let run = transfer::run(&from, &to, Some(LATER), &tell);
        tokio::pin!(run);
        loop {
            tokio::select! {
                biased;
                Some(step) = seen.recv() => if step.table == "turn_records" { break },
                report = &mut run => panic!("{report:?}"),
            }
        }
    }
    let mut conn = SqliteConnection::connect(&format!("sqlite://{}", h.path().display())).await.unwrap();
    sqlx::query("UPDATE jobs SET entry = 'other' WHERE job_id = (SELECT max(job_id) FROM jobs)")
        .execute(&mut conn)
        .await
        .unwrap();
    let report = moved(&from, &to).await;
    assert_eq!((report.outcome, report.resumed), (Ending::Differs, true));
    let differing: Vec<&str> = report.tables.iter().filter(|one| !one.equal()).map(|one| one.name).collect();
    assert_eq!(differing, ["jobs"]);
    assert!(report.tables.iter().any(|one| one.changed));
    // And it stays closed.
    let error = open(&dir.path().join("there.db"), OpenOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("a move into it has not come to its end"), "{error}");
    // What counts differently is another queue.
    sqlx::query("DELETE FROM labels WHERE job_id = (SELECT max(job_id) FROM labels)").execute(&mut conn).await.unwrap();
    let why = refused(&from, &to, LATER).await;
    assert!(why.contains("or the source has changed since that move began"), "{why}");
}
