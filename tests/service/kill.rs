//! What is left standing when processes are killed, told to stop, or frozen: the promises of durability, on the binary
//! itself.

use crate::bench::{self, error, is_final, text};
use crate::process::{Place, until};
use reprieve::agent::accept::{self, Directory};
use reprieve::store::{CancelOutcome, JobId, JobRow, JobState, Outcome, Query, Sqlite, Store, Submitted, TurnView};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// As short as a lease may be.
pub const SHORT_LEASE: &str = "[worker]\nlease = \"3s\"\n";

/// Submits jobs for the simulator by the library.
pub async fn submit(place: &Place, store: &Sqlite, specs: Vec<Value>) -> Vec<JobId> {
    let directory = Directory::of(&place.config);
    let now_ms = store.clock().now_ms();
    let jobs = specs.iter().map(|spec| accept::accept(&spec.to_string(), &directory, now_ms, None).unwrap()).collect();
    let answers = store.submit(jobs).await.unwrap();
    answers
        .into_iter()
        .map(|answer| match answer {
            Submitted::Accepted(id) => id,
            other => panic!("not accepted: {other:?}"),
        })
        .collect()
}

pub fn spec(model: &str) -> Value {
    json!({"model": model, "provider": "sim", "input": "What is at the quay?"})
}

async fn job_as(store: &Sqlite, id: JobId, what: &str, is: impl Fn(&JobRow) -> bool) -> JobRow {
    let is = &is;
    until(what, || async move { store.job(id).await.unwrap().filter(is) }).await
}

pub async fn ended(store: &Sqlite, id: JobId) -> JobRow {
    job_as(store, id, "the job's end", is_final).await
}

pub fn outcomes(turns: &[TurnView]) -> Vec<Outcome> {
    turns.iter().map(|turn| turn.record.outcome).collect()
}

fn everything(store: &Sqlite) -> Query {
    Query { limit: 1_000, include_ended: true, now_ms: store.clock().now_ms(), ..Query::default() }
}

/// Whether the killed service comes back before or after the reset that its jobs wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    Before,
    After,
}

async fn killed_while_deferred(back: Back) {
    let scenario = "[[rules]]\nname = \"spent\"\nfirst = 1\n\
        refuse = { kind = \"plan_window\", reset_in = \"5s\", closes = \"key\" }\n";
    let place = Place::new(scenario, SHORT_LEASE).await;
    let store = place.store().await;
    let ids = submit(&place, &store, (0..10).map(|n| spec(if n % 2 == 0 { "m" } else { "o" })).collect()).await;
    let service = place.start(&["serve"]).await;
    // Whatever was on the wire when the first refusal came has been refused as well; nobody has a turn in hand.
    let held = until("the hold", || async {
        let overview = store.overview(store.clock().now_ms()).await.unwrap();
        (overview.holds > 0 && overview.running == 0 && overview.deferred == 10).then_some(overview)
    });
    let resume_ms = held.await.next_resume_ms.unwrap();
    let sent_before = place.sim.stats().totals.received;
    service.kill().await;
    if back == Back::After {
        store.clock().sleep_until(resume_ms + 300).await;
        assert_eq!(place.sim.stats().totals.received, sent_before);
    }
    let service = place.start(&["serve"]).await;
    if back == Back::Before {
        assert!(store.clock().now_ms() < resume_ms, "the service was too slow to come back");
    }
    for id in &ids {
        let job = ended(&store, *id).await;
        assert_eq!(job.state, JobState::Succeeded, "{:?}", job.error);
    }
    let mut after_ms = i64::MAX;
    for id in &ids {
        let turns = store.turns(*id).await.unwrap();
        let done: Vec<_> = turns.iter().filter(|turn| turn.record.outcome == Outcome::Completed).collect();
        assert_eq!(done.len(), 1);
        assert!(turns.iter().all(|turn| matches!(turn.record.outcome, Outcome::Completed | Outcome::Deferred)));
        after_ms = after_ms.min(done[0].record.started_ms);
        let refusals: usize = turns.iter().map(|turn| turn.evidence.len()).sum();
        assert_eq!(refusals, turns.len() - 1, "each refusal keeps its evidence");
    }
    assert!(after_ms >= resume_ms, "resumed {} ms too early", resume_ms - after_ms);
    let counts = place.sim.stats().totals;
    assert_eq!((counts.early, counts.doomed), (0, 0));
    // As many were answered as there are jobs, and no refusal came but those before the kill.
    assert_eq!((counts.completed, counts.received), (10, sent_before + 10));
    service.stop().await;
    consistent(&place).await;
}

#[tokio::test]
async fn a_service_killed_behind_a_reset_and_back_before_it_resumes_once_and_not_before() {
    killed_while_deferred(Back::Before).await;
}

#[tokio::test]
async fn a_service_killed_behind_a_reset_and_back_after_it_resumes_once() {
    killed_while_deferred(Back::After).await;
}

#[tokio::test]
async fn a_call_in_hand_of_a_killed_service_leaves_one_lost_record_and_is_made_again() {
    let scenario = "[[rules]]\nname = \"stalls\"\nfirst = 1\nstall = { after_chunks = 2 }\n";
    let place = Place::new(scenario, SHORT_LEASE).await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let id = submit(&place, &store, vec![spec("m")]).await[0];
    until("the call", || async { (place.sim.stats().totals.received == 1).then_some(()) }).await;
    service.kill().await;
    let service = place.start(&["serve"]).await;
    assert_eq!(ended(&store, id).await.state, JobState::Succeeded);
    let turns = store.turns(id).await.unwrap();
    assert_eq!(outcomes(&turns), [Outcome::Lost, Outcome::Completed]);
    assert_eq!((turns[0].record.attempts, turns[0].record.code.as_deref()), (None, Some("worker_lost")));
    service.stop().await;
    consistent(&place).await;
}

#[tokio::test]
async fn sigterm_finishes_what_is_in_hand_and_a_client_that_dawdles_does_not_keep_the_process() {
    let place = Place::new("[answer]\nlatency = \"700ms\"\n", "").await;
    let store = place.store().await;
    let service = place.start(&["serve"]).await;
    let id = submit(&place, &store, vec![spec("m")]).await[0];
    until("the call", || async { (place.sim.stats().totals.received == 1).then_some(()) }).await;
    // One sends half a head, one half a body, one nothing.
    let address = service.url().trim_start_matches("http://").to_owned();
    let mut dawdlers = Vec::new();
    for half in [
        String::new(),
        format!("POST /v1/jobs HTTP/1.1\r\nhost: {address}\r\n"),
        format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{{"
        ),
    ] {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        dawdlers.push(stream);
    }
    let log = service.stop().await;
    assert!(!log.contains('\x1b'), "colours are for terminals: {log}");
    assert_eq!(ended(&store, id).await.state, JobState::Succeeded);
    assert_eq!(outcomes(&store.turns(id).await.unwrap()), [Outcome::Completed]);
    consistent(&place).await;
}

#[tokio::test]
async fn a_second_signal_stops_at_once_and_the_turn_goes_back_uncounted() {
    for again in ["TERM", "INT"] {
        let scenario = "[[rules]]\nname = \"stalls\"\nstall = { after_chunks = 2 }\n";
        let place = Place::new(scenario, "").await;
        let store = place.store().await;
        let service = place.start(&["serve"]).await;
        let id = submit(&place, &store, vec![spec("m")]).await[0];
        until("the call", || async { (place.sim.stats().totals.received == 1).then_some(()) }).await;
        service.signal("TERM");
        service.logs("asked to stop").await;
        // It drains: the call goes on.
        assert_eq!(place.sim.stats().totals.abandoned, 0);
        service.signal(again);
        let (code, log) = service.ended().await;
        assert_eq!(code, Some(0), "{log}");
        let job = store.job(id).await.unwrap().unwrap();
        assert_eq!((job.state, job.executions), (JobState::Queued, Some(0)));
        let turns = store.turns(id).await.unwrap();
        assert_eq!(outcomes(&turns), [Outcome::Requeued]);
        assert_eq!(turns[0].record.code.as_deref(), Some("worker_drained"));
        consistent(&place).await;
    }
}

#[tokio::test]
async fn a_worker_frozen_past_its_lease_writes_nothing_when_it_wakes() {
    // The first call goes on while its worker is frozen: its whole answer lies ready when it wakes.
    let scenario = "[[rules]]\nname = \"slow\"\nfirst = 1\nstall = { after_chunks = 2, for = \"2s\" }\n";
    let place = Place::new(scenario, SHORT_LEASE).await;
    let store = place.store().await;
    let zombie = place.start(&["worker"]).await;
    let id = submit(&place, &store, vec![spec("m")]).await[0];
    until("the call", || async { (place.sim.stats().totals.received == 1).then_some(()) }).await;
    let other = place.start(&["worker"]).await;
    zombie.signal("STOP");
    let job = ended(&store, id).await;
    assert_eq!(job.state, JobState::Succeeded);
    let before = store.turns(id).await.unwrap();
    assert_eq!(outcomes(&before), [Outcome::Lost, Outcome::Completed]);
    zombie.signal("CONT");
    zombie.logs("begins again under a new id").await;
    zombie.stop().await;
    other.stop().await;
    assert_eq!(store.turns(id).await.unwrap(), before);
    assert_eq!(store.job(id).await.unwrap().unwrap(), job);
    assert_eq!(place.sim.stats().totals.received, 2);
    consistent(&place).await;
}

#[tokio::test]
async fn two_processes_send_one_probe_and_none_early_and_a_cancel_reaches_the_other() {
    let scenario = "[answer]\nlatency = \"400ms\"\n\
        [[rules]]\nname = \"stalls\"\nmodels = [\"stalls\"]\nstall = { after_chunks = 2 }\n\
        [[rules]]\nname = \"spent\"\nmodels = [\"m\"]\nfirst = 1\nrefuse = { kind = \"rate_limit_requests\", reset_in = \"3s\" }\n";
    let place = Place::new(scenario, "").await;
    let store = place.store().await;
    let processes = [place.start(&["serve"]).await, place.start(&["worker"]).await];
    let ids = submit(&place, &store, (0..12).map(|_| spec("m")).collect()).await;
    for id in &ids {
        assert_eq!(ended(&store, *id).await.state, JobState::Succeeded);
    }
    let counts = place.sim.stats().totals;
    assert_eq!((counts.early, counts.doomed), (0, 0));
    let hold = store.holds(everything(&store)).await.unwrap().pop().unwrap();
    let resume_ms = hold.until_ms.unwrap();
    let arrived: Vec<i64> =
        place.sim.log(0, 1_000).entries.iter().map(|entry| entry.at_ms).filter(|at_ms| *at_ms >= resume_ms).collect();
    // The second may go only when the probe has been answered.
    assert!(arrived[1] - arrived[0] >= 380, "{arrived:?}");

    for process in &processes {
        // Whoever has it, one of the two is not the process that is told.
        let id = submit(&place, &store, vec![spec("stalls")]).await[0];
        job_as(&store, id, "its start", |job| job.state == JobState::Running).await;
        let asked_ms = store.clock().now_ms();
        assert_eq!(store.cancel(vec![id], asked_ms).await.unwrap(), [CancelOutcome::Asked]);
        let job = ended(&store, id).await;
        assert_eq!(job.state, JobState::Cancelled, "{}", process.log());
        assert_eq!(error(&job)["code"], "model_cancelled");
        assert!(job.finished_ms.unwrap() - asked_ms < 2_000);
    }
    for process in processes {
        process.stop().await;
    }
    consistent(&place).await;
}

// -- Kills at random

/// How much of it: the gate's short form, or what `scripts/kill` asks for.
struct Drill {
    kills: u64,
    jobs: usize,
    seed: u64,
}

impl Drill {
    fn asked_for() -> Self {
        let number = |name: &str, short: u64| {
            std::env::var(name).map_or(short, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        Self {
            kills: number("REPRIEVE_KILLS", 6),
            jobs: usize::try_from(number("REPRIEVE_KILL_JOBS", 120)).unwrap(),
            seed: number("REPRIEVE_KILL_SEED", 1),
        }
    }
}

/// `SplitMix64`: a few lines, and the same numbers in every release.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (z ^ (z >> 31)) % (to - from)
    }
}

/// A metered provider that also drops, breaks and refuses by itself; every refusal names its reset.
const HARSH: &str = "[answer]\nlatency = \"60ms\"\nchunk_latency = \"8ms\"\n\
    [[limits]]\nname = \"requests\"\nkeys = [\"sim-main\"]\ncount = \"requests\"\nlimit = 900\nper = \"1m\"\nburst = 20\n\
    [[rules]]\nname = \"window\"\nkeys = [\"sim-main\"]\nevery = 90\n\
    refuse = { kind = \"rate_limit_requests\", reset_in = \"3s\" }\n\
    [[rules]]\nname = \"drops\"\nkeys = [\"sim-main\"]\nstream = true\nevery = 11\ndrop = { after_chunks = 3 }\n\
    [[rules]]\nname = \"breaks\"\nkeys = [\"sim-main\"]\nevery = 17\nrefuse = { kind = \"overloaded\", reset = [] }\n\
    [[rules]]\nname = \"unfinished\"\nkeys = [\"sim-main\"]\nstream = true\nevery = 29\nend = { after_chunks = 2 }\n";

/// What the clients of the drill know.
#[derive(Default)]
struct Acknowledged {
    /// By key.
    keyed: std::collections::BTreeMap<String, String>,
    /// Acknowledged without a key.
    unkeyed: Vec<String>,
    /// Submissions that had no answer: with a key they were repeated.
    broken_off: u64,
}

const QUESTIONS: usize = 7;

fn drill_spec(n: usize) -> Value {
    json!({"model": format!("m-{}", n % 5), "provider": "sim", "queue": format!("q-{}", n % 3),
           "input": format!("Question {}?", n % QUESTIONS), "labels": {"question": (n % QUESTIONS).to_string()},
           "stream": !n.is_multiple_of(4)})
}

/// One client: submits its share in its own way, repeating what had no answer.
async fn client(
    n: usize,
    jobs: Vec<usize>,
    url: tokio::sync::watch::Receiver<String>,
    place: &Place,
    store: &Sqlite,
) -> Acknowledged {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let mut known = Acknowledged::default();
    let directory = Directory::of(&place.config);
    for (chunk, members) in jobs.chunks([7, 1, 3, 1][n]).enumerate() {
        let key = format!("{n}-{chunk}");
        loop {
            let base = url.borrow().clone();
            let acks: Result<Vec<(String, String)>, ()> = match n {
                0 => bulk(&http, &base, &key, members).await,
                1 => single(&http, &base, Some(&key), members[0]).await.map(|id| vec![(key.clone(), id)]),
                2 => {
                    let now_ms = store.clock().now_ms();
                    let jobs = members.iter().map(|n| {
                        let key = format!("{key}:{n}");
                        accept::accept(&drill_spec(*n).to_string(), &directory, now_ms, Some(key)).unwrap()
                    });
                    let answers = store.submit(jobs.collect()).await.unwrap();
                    let id = |answer: &Submitted| match answer {
                        Submitted::Accepted(id) | Submitted::Duplicate(id) => id.to_string(),
                        Submitted::Conflict(_) => panic!("a conflict"),
                    };
                    Ok(members.iter().zip(&answers).map(|(n, answer)| (format!("{key}:{n}"), id(answer))).collect())
                }
                _ => match single(&http, &base, None, members[0]).await {
                    Ok(id) => {
                        known.unkeyed.push(id);
                        Ok(Vec::new())
                    }
                    Err(()) => Err(()),
                },
            };
            if let Ok(acks) = acks {
                for (key, id) in acks {
                    let before = known.keyed.insert(key.clone(), id.clone());
                    assert!(before.is_none_or(|before| before == id), "{key} is two jobs");
                }
                break;
            }
            known.broken_off += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    known
}

async fn single(http: &reqwest::Client, base: &str, key: Option<&str>, n: usize) -> Result<String, ()> {
    let mut request = http.post(format!("{base}/v1/jobs")).json(&drill_spec(n));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = request.send().await.map_err(drop)?;
    let status = response.status();
    let body: Value = response.json().await.map_err(drop)?;
    // A problem is an answer as well: the database may be away for a moment, and then nothing was acknowledged.
    if status.is_success() { Ok(body["id"].as_str().unwrap().to_owned()) } else { Err(()) }
}

async fn bulk(http: &reqwest::Client, base: &str, key: &str, members: &[usize]) -> Result<Vec<(String, String)>, ()> {
    let lines: Vec<String> = members.iter().map(|n| drill_spec(*n).to_string()).collect();
    let request = http
        .post(format!("{base}/v1/jobs/bulk"))
        .header("content-type", "application/x-ndjson")
        .header("idempotency-key", key)
        .body(lines.join("\n"));
    let answer = request.send().await.map_err(drop)?.text().await.map_err(drop)?;
    let acks: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).map_err(drop)).collect::<Result<_, _>>()?;
    if acks.len() < members.len() || acks.iter().any(|ack| ack.get("id").is_none()) {
        return Err(());
    }
    Ok(acks.iter().map(|ack| (format!("{key}:{}", ack["line"]), ack["id"].as_str().unwrap().to_owned())).collect())
}

/// The whole answer to a question, as the simulator gives it to one who is never disturbed.
async fn whole_answer(place: &Place, question: usize) -> String {
    let body = json!({"model": "m-0", "messages": [{"role": "user", "content": format!("Question {question}?")}]});
    let request = reqwest::Client::new()
        .post(format!("{}/v1/chat/completions", place.sim.url()))
        .bearer_auth("sim-undisturbed")
        .json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_and_whenever_every_acknowledged_job_ends_once() {
    let drill = Drill::asked_for();
    let more = format!(
        "{SHORT_LEASE}[recovery.tiered.requeue]\nbase = \"500ms\"\n[recovery.tiered.transient]\nbase = \"100ms\"\n"
    );
    let place = Place::new(HARSH, &more).await;
    let store = place.store().await;
    let started = std::time::Instant::now();
    let mut answers = Vec::new();
    for question in 0..QUESTIONS {
        answers.push(whole_answer(&place, question).await);
    }

    let mut service = place.start(&["serve"]).await;
    let (served, url) = tokio::sync::watch::channel(service.url());
    let mut dice = Dice(drill.seed);
    let killing = async {
        for _ in 0..drill.kills {
            tokio::time::sleep(Duration::from_millis(dice.roll(50, 1_500))).await;
            service.kill().await;
            consistent(&place).await;
            service = place.start(&["serve"]).await;
            served.send_replace(service.url());
        }
        service
    };
    let share = |n: usize| (0..drill.jobs).filter(move |job| job % 4 == n).collect::<Vec<_>>();
    let clients = futures::future::join_all((0..4).map(|n| client(n, share(n), url.clone(), &place, &store)));
    let (service, known) = tokio::join!(killing, clients);
    let killed_for = started.elapsed();

    // Now everything may end.
    let mut left = i64::MAX;
    let mut idle = tokio::time::Instant::now();
    while left > 0 {
        let overview = store.overview(store.clock().now_ms()).await.unwrap();
        let now_left = overview.ready + overview.running + overview.deferred;
        if now_left != left {
            (left, idle) = (now_left, tokio::time::Instant::now());
        }
        assert!(idle.elapsed() < bench::PATIENCE, "{left} jobs do not end: {overview:?}\n{}", service.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    service.stop().await;
    consistent(&place).await;

    let broken_off: u64 = known.iter().map(|known| known.broken_off).sum();
    let keyed: Vec<(&String, &String)> = known.iter().flat_map(|known| &known.keyed).collect();
    let unkeyed: Vec<&String> = known.iter().flat_map(|known| &known.unkeyed).collect();
    let ids: std::collections::BTreeSet<&String> =
        keyed.iter().map(|(_, id)| *id).chain(unkeyed.iter().copied()).collect();
    assert_eq!(keyed.len() + unkeyed.len(), drill.jobs);
    assert_eq!(ids.len(), drill.jobs, "two acknowledgements name one job");

    let (mut succeeded, mut failed, mut lost, mut continued) = (0, std::collections::BTreeMap::new(), 0, 0);
    for id in &ids {
        let id: JobId = id.parse().unwrap();
        let job = store.job(id).await.unwrap().expect("an acknowledged job is gone");
        let turns = store.turns(id).await.unwrap();
        let fences: std::collections::BTreeSet<_> = turns.iter().map(|turn| turn.fence).collect();
        assert_eq!(fences.len(), turns.len(), "two records of one execution");
        lost += turns.iter().filter(|turn| turn.record.outcome == Outcome::Lost).count();
        let completed = turns.iter().filter(|turn| turn.record.outcome == Outcome::Completed).count();
        match job.state {
            JobState::Succeeded => {
                succeeded += 1;
                assert_eq!(completed, 1);
                continued += usize::from(turns.iter().any(|turn| turn.record.outcome == Outcome::Truncated));
                let question: usize = job.labels[0].1.parse().unwrap();
                assert_eq!(text(&job), answers[question], "{turns:#?}");
            }
            JobState::Failed => {
                assert_eq!(completed, 0);
                *failed.entry(error(&job)["code"].as_str().unwrap().to_owned()).or_insert(0) += 1;
            }
            other => panic!("{id} is {other:?}"),
        }
    }
    // Repeated submissions made no second job.
    let kept = jobs_with_keys(&place).await;
    assert_eq!(kept, i64::try_from(keyed.len()).unwrap());
    assert_eq!(sent_while_held(&place).await, 0, "a permit committed while its scope was held");
    let counts = place.sim.stats().totals;
    let unheard = i64::try_from(counts.refused).unwrap() - refusals_recorded(&place).await;
    // A refusal that was answered to a process killed before its commit is known to nobody.
    assert!(unheard >= 0);
    assert!(counts.early <= unheard.unsigned_abs() * 8, "{counts:?}, {unheard} unheard");
    println!(
        "kill drill: seed {} · {} kills in {:.1} s · {} jobs acknowledged ({} submissions broken off) · {succeeded} succeeded \
         ({continued} continued a broken answer) · failed {failed:?} · {lost} lost executions · {} requests, {} refused \
         ({unheard} unheard), {} failed, {} dropped, {} faulted, {} abandoned · early {} · all ended after {:.1} s",
        drill.seed,
        drill.kills,
        killed_for.as_secs_f64(),
        ids.len(),
        broken_off,
        counts.received,
        counts.refused,
        counts.failed,
        counts.dropped,
        counts.faulted,
        counts.abandoned,
        counts.early,
        started.elapsed().as_secs_f64()
    );
}

// -- What a database says of itself, past the store's own seam

async fn one(place: &Place, query: &'static str) -> i64 {
    use sqlx::Connection;
    let mut conn = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    let number = sqlx::query_scalar(query).fetch_one(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    number
}

async fn jobs_with_keys(place: &Place) -> i64 {
    one(place, "SELECT count(*) FROM jobs WHERE key IS NOT NULL").await
}

async fn refusals_recorded(place: &Place) -> i64 {
    one(place, "SELECT count(*) FROM reset_evidence WHERE cause = 'rate_limit'").await
}

/// Sends whose permit committed after a refusal of their scope was received, with a margin for its commit, and that
/// started before the refusal's resume instant.
async fn sent_while_held(place: &Place) -> i64 {
    one(
        place,
        "SELECT count(*) FROM reset_evidence AS e JOIN jobs AS j ON j.job_id = e.job_id
         JOIN jobs AS k ON k.lane_id IN (SELECT l.lane_id FROM lanes AS l WHERE l.scope_id =
                                         (SELECT o.scope_id FROM lanes AS o WHERE o.lane_id = j.lane_id))
         JOIN all_sends AS s ON s.job_id = k.job_id
         WHERE e.resume_at_ms IS NOT NULL AND s.permit_ms > e.received_ms + 500 AND s.started_ms < e.resume_at_ms",
    )
    .await
}

/// Nothing in the database contradicts anything else in it.
pub async fn consistent(place: &Place) {
    use sqlx::Connection;
    let mut conn = sqlx::SqliteConnection::connect(&place.config.database).await.unwrap();
    let mut all = Vec::new();
    // One snapshot: others may be writing.
    sqlx::query("BEGIN").execute(&mut conn).await.unwrap();
    for query in crate::contradictions::CONTRADICTIONS {
        all.extend(sqlx::query_scalar::<_, String>(*query).fetch_all(&mut conn).await.unwrap());
    }
    let whole: String = sqlx::query_scalar("PRAGMA quick_check").fetch_one(&mut conn).await.unwrap();
    sqlx::query("COMMIT").execute(&mut conn).await.unwrap();
    assert_eq!(whole, "ok");
    assert_eq!(all, Vec::<String>::new());
}
