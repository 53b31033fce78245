//! The API in this process, over a store whose clock is the test's, and a worker's part played by hand.

use crate::rig::{Said, command};
use reprieve::agent::Directory;
use reprieve::api::{self, Api};
use reprieve::clock::Clock;
use reprieve::config::Config;
use reprieve::failure::{Candidate, SourceKind, Verdict};
use reprieve::store::sqlite::{OpenOptions, Sqlite};
use reprieve::store::*;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Mon 30 Nov 2026, 14:03:05Z.
pub const NOW_MS: i64 = 1_796_047_385_000;

pub struct Served {
    pub url: String,
    pub store: Sqlite,
    pub directory: Arc<Directory>,
    pub client: Client,
    pub stop: CancellationToken,
    pub dir: tempfile::TempDir,
}

pub const CONFIG: &str = "[providers.sim]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\n\
    [providers.keyless]\nadapter = \"openai\"\nendpoint = \"http://127.0.0.1:9/v1/\"\napi_key = \"${NO_SUCH_KEY}\"\n";

pub async fn serve() -> Served {
    serve_with(api::Waits::default(), Clock::system()).await
}

pub async fn serve_within(waits: api::Waits) -> Served {
    serve_with(waits, Clock::system()).await
}

/// At [`NOW_MS`], until the test moves on.
pub async fn serve_at_now() -> (Served, Clock) {
    let clock = Clock::manual(NOW_MS);
    (serve_with(api::Waits::default(), clock.clone()).await, clock)
}

async fn serve_with(waits: api::Waits, clock: Clock) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.toml");
    std::fs::write(&file, format!("database = \"sqlite://r.db\"\n{CONFIG}")).unwrap();
    let config = Config::load(Some(&file), &[]).unwrap().config;
    let url = format!("sqlite://{}", dir.path().join("r.db").display());
    let store = Sqlite::open(&url, clock, OpenOptions::default()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let directory = Arc::new(Directory::of(&config));
    let api = Api { store: store.clone(), directory: Arc::clone(&directory), hosts: Arc::default() };
    tokio::spawn(api::serve(listener, api, waits, stop.clone()));
    Served { url, store, directory, client: Client::new(), stop, dir }
}

impl Served {
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.client.delete(format!("{}{path}", self.url))
    }

    pub async fn submit(&self, job: &Value) -> Response {
        self.post("/v1/jobs").json(job).send().await.unwrap()
    }

    /// Submits a job that must be taken.
    pub async fn taken(&self, job: &Value) -> JobId {
        let answer = body(self.submit(job).await).await;
        answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
    }

    pub fn bulk(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.post("/v1/jobs/bulk").header("content-type", "application/x-ndjson").body(body)
    }

    /// One job's explanation, over HTTP.
    pub async fn explained(&self, id: JobId) -> Value {
        body(self.get(&format!("/v1/jobs/{id}/explain")).send().await.unwrap()).await
    }

    /// What the binary says of the same database, with its clock put to the test's.
    pub fn commanded(&self, arguments: &[&str]) -> Said {
        let off_ms = self.store.clock().now_ms() - Clock::system().now_ms();
        let skew = if off_ms < 0 { format!("-{}ms", -off_ms) } else { format!("{off_ms}ms") };
        let arguments = [&["--config", "r.toml"], arguments].concat();
        let output = command(self.dir.path(), &arguments).env("REPRIEVE_CLOCK_SKEW", skew).output().unwrap();
        Said::of(&output, self.dir.path())
    }

    /// What a request answers, with its status, as a snapshot holds it.
    pub async fn shown(&self, request: RequestBuilder) -> String {
        let built = request.build().unwrap();
        let asked = format!("{} {}", built.method(), built.url().as_str().strip_prefix(&self.url).unwrap());
        let response = self.client.execute(built).await.unwrap();
        let status = response.status().as_u16();
        let mut headers = String::new();
        for name in ["location", "reprieve-next-cursor", "allow"] {
            if let Some(value) = response.headers().get(name) {
                headers.push_str(&format!("\n{name}: {}", value.to_str().unwrap()));
            }
        }
        let text = response.text().await.unwrap();
        let lines: Vec<String> = text
            .lines()
            .map(|line| match serde_json::from_str::<Value>(line) {
                Ok(value) => serde_json::to_string_pretty(&value).unwrap(),
                Err(_) => line.to_owned(),
            })
            .collect();
        format!("{asked}\n{status}{headers}\n{}\n", lines.join("\n"))
    }
}

/// Ids by their order of appearance, cursors and ports by their kind.
pub fn redacted(text: &str, served: &Served) -> String {
    let mut out = text.replace(&served.url, "SERVER");
    let mut known = Vec::new();
    let mut at = 0;
    while at < out.len() {
        let Some(piece) = out.get(at..at + 36) else {
            at += 1;
            continue;
        };
        if piece.parse::<uuid::Uuid>().is_ok() && piece.as_bytes()[8] == b'-' {
            if !known.contains(&piece.to_owned()) {
                known.push(piece.to_owned());
            }
            let n = known.iter().position(|id| id == piece).unwrap() + 1;
            let name = format!("ID-{n}");
            out = out.replace(&known[n - 1], &name);
        }
        at += 1;
    }
    for (n, id) in known.iter().enumerate() {
        let short = format!("{}…{}", &id[..8], &id[32..]);
        out = out.replace(&short, &format!("SHORT-ID-{}", n + 1));
    }
    out.lines()
        .map(|line| match line.split_once("\"next_cursor\": \"") {
            Some((head, _)) => format!("{head}\"next_cursor\": \"CURSOR\""),
            None if line.starts_with("reprieve-next-cursor: ") => "reprieve-next-cursor: CURSOR".to_owned(),
            None => line.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("\n")
}

pub fn job(input: &str) -> Value {
    json!({"model": "m", "provider": "sim", "input": input})
}

pub async fn body(response: Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

/// A worker whose turns the test sends and ends.
pub struct Hand {
    pub store: Sqlite,
    pub worker: WorkerId,
    queues: Vec<String>,
}

impl Hand {
    pub async fn new(store: &Sqlite, queues: &[&str]) -> Self {
        let now_ms = store.clock().now_ms();
        let worker = WorkerId::fresh();
        let queues: Vec<String> = queues.iter().map(|queue| (*queue).to_owned()).collect();
        let row = WorkerRow {
            id: worker,
            queues: queues.clone(),
            started_ms: now_ms,
            heartbeat_ms: now_ms,
            lease_ms: 3_600_000,
            concurrency: 64,
        };
        store.register_worker(row).await.unwrap();
        Self { store: store.clone(), worker, queues }
    }

    pub fn now_ms(&self) -> i64 {
        self.store.clock().now_ms()
    }

    pub async fn claim(&self, room: u32) -> Vec<ClaimedTurn> {
        let request = ClaimRequest {
            worker: self.worker,
            queues: self.queues.clone(),
            room,
            without: Vec::new(),
            now_ms: self.now_ms(),
        };
        self.store.claim(request).await.unwrap()
    }

    /// The one turn that may go.
    pub async fn one(&self) -> ClaimedTurn {
        self.claim(1).await.pop().expect("a turn may go")
    }

    fn record(turn: &ClaimedTurn, outcome: Outcome, now_ms: i64) -> TurnRecord {
        TurnRecord {
            seq: turn.seq,
            outcome,
            cut: None,
            started_ms: turn.grant.permit_ms,
            ended_ms: now_ms,
            attempts: Some(1),
            error: None,
            response: Some(r#"{"text":"because","finish_reason":"stop","tool_calls":[],"usage":{}}"#.into()),
            usage: Usage { input_tokens: Some(3), output_tokens: Some(5), total_tokens: Some(8) },
            class: None,
            cause: None,
            code: None,
            http_status: Some(200),
            rule: None,
            rules_version: Some(1),
            decision: None,
            resume_at_ms: None,
            skew_ms: None,
            phase: None,
            request_id: Some("req-1".into()),
            provider_code: None,
            provider_type: None,
            finish_reason: Some("stop".into()),
            provider_model: Some("m-1".into()),
            received_ms: Some(now_ms),
        }
    }

    fn failed(turn: &ClaimedTurn, outcome: Outcome, status: u16, decision: &str, now_ms: i64) -> TurnRecord {
        let (class, cause) =
            if status == 429 { ("rate_limit", "rate_limit") } else { ("unavailable", "provider_error") };
        TurnRecord {
            error: Some(error(status)),
            response: None,
            usage: Usage::default(),
            class: Some(class.into()),
            cause: Some(cause.into()),
            code: Some("model_incomplete".into()),
            http_status: Some(status),
            decision: Some(decision.into()),
            finish_reason: None,
            ..Self::record(turn, outcome, now_ms)
        }
    }

    fn send(turn: &ClaimedTurn, outcome: &str, status: u16, now_ms: i64) -> SendRow {
        SendRow {
            n: 1,
            permit_ms: turn.grant.permit_ms,
            started_ms: turn.grant.permit_ms,
            first_byte_ms: Some(now_ms),
            ended_ms: now_ms,
            outcome: outcome.into(),
            http_status: Some(status),
            cause: None,
            class: None,
            error: None,
            wait_ms: None,
            wait_source: None,
            tests: turn.grant.probe.and_then(|probe| probe.tests),
            tests_resume_ms: turn.grant.probe.map(|probe| probe.resume_ms),
        }
    }

    pub async fn complete(&self, completion: Completion) {
        assert_eq!(self.store.complete(vec![completion]).await.unwrap(), [Applied::Done]);
    }

    /// An answer that ends the job.
    pub fn answer(&self, turn: &ClaimedTurn) -> Completion {
        let now_ms = self.now_ms();
        Completion {
            worker: self.worker,
            job_id: turn.job_id,
            fence: turn.fence,
            now_ms,
            record: Self::record(turn, Outcome::Completed, now_ms),
            send: Some(Self::send(turn, "answered", 200, now_ms)),
            evidence: None,
            refusal: None,
            probe: turn.grant.probe.map(|probe| probe.hold_id),
            answered: true,
            next: Next::Final { state: JobState::Succeeded, result: Some(r#"{"text":"because"}"#.into()), error: None },
        }
    }

    /// A refusal that names a reset: the turn goes back behind the hold.
    pub fn refuse(&self, turn: &ClaimedTurn, refusal: RefusalRow) -> Completion {
        let now_ms = self.now_ms();
        Completion {
            record: TurnRecord {
                resume_at_ms: Some(refusal.until_ms),
                skew_ms: Some(0),
                ..Self::failed(turn, Outcome::Deferred, 429, "defer", now_ms)
            },
            send: Some(Self::send(turn, "refused", 429, now_ms)),
            evidence: Some(evidence(1, now_ms, &refusal)),
            answered: false,
            next: Next::Behind,
            refusal: Some(refusal),
            ..self.answer(turn)
        }
    }

    /// A fault of the provider's: the turn is due again later.
    pub fn requeue(&self, turn: &ClaimedTurn, due_ms: i64) -> Completion {
        let now_ms = self.now_ms();
        Completion {
            record: Self::failed(turn, Outcome::Requeued, 503, "requeue", now_ms),
            send: Some(Self::send(turn, "failed", 503, now_ms)),
            answered: false,
            next: Next::Again { due_ms, counts: true },
            ..self.answer(turn)
        }
    }

    /// A stream that broke after some text: it is kept, and the next turn goes on from its end.
    pub fn cut(&self, turn: &ClaimedTurn, text: &str, due_ms: i64) -> Completion {
        let now_ms = self.now_ms();
        let response = json!({"text": text, "finish_reason": null, "tool_calls": [], "usage": {}}).to_string();
        let go_on = json!({"role": "user", "content": "Go on."}).to_string();
        let inbox = vec![InboxRow { seq: turn.seq + 1, kind: "continuation".into(), body: go_on, at_ms: now_ms }];
        Completion {
            record: TurnRecord {
                cut: Some("stalled".into()),
                response: Some(response),
                ..Self::failed(turn, Outcome::Truncated, 503, "commit_partial", now_ms)
            },
            send: Some(Self::send(turn, "cut", 200, now_ms)),
            next: Next::Turn { due_ms: Some(due_ms), repairs: 1, inbox },
            ..self.answer(turn)
        }
    }

    /// A failure that ends the job.
    pub fn fail(&self, turn: &ClaimedTurn) -> Completion {
        let now_ms = self.now_ms();
        Completion {
            record: Self::failed(turn, Outcome::Failed, 400, "fail", now_ms),
            send: Some(Self::send(turn, "failed", 400, now_ms)),
            answered: true,
            next: Next::Final { state: JobState::Failed, result: None, error: Some(error(400)) },
            ..self.answer(turn)
        }
    }

    /// A refusal that is waited out in place.
    pub async fn set_back(&self, turn: &ClaimedTurn, refusal: RefusalRow) {
        let now_ms = self.now_ms();
        let setback = Setback {
            worker: self.worker,
            job_id: turn.job_id,
            fence: turn.fence,
            now_ms,
            send: SendRow {
                cause: Some("rate_limit".into()),
                class: Some("rate_limit".into()),
                error: Some(error(429)),
                wait_ms: Some(refusal.until_ms - now_ms),
                wait_source: Some(refusal.source.clone()),
                ..Self::send(turn, "refused", 429, now_ms)
            },
            evidence: Some(evidence(1, now_ms, &refusal)),
            probe: turn.grant.probe.map(|probe| probe.hold_id),
            wait_until_ms: refusal.until_ms,
            refusal: Some(refusal),
        };
        assert_eq!(self.store.set_back(setback).await.unwrap(), Applied::Done);
    }
}

pub fn error(status: u16) -> String {
    let class = if status == 429 { "rate_limit" } else { "unavailable" };
    format!(
        "{{\"code\":\"model_incomplete\",\"message\":\"model_error: model returned HTTP {status}; attempts=1\",\
         \"class\":\"{class}\",\"retryable\":true}}"
    )
}

/// A refusal of a model's or (with an empty one) the account's scope.
pub fn refusal(turn: &ClaimedTurn, whole_account: bool, until_ms: i64, source: &str, raw: Option<&str>) -> RefusalRow {
    let scope = if whole_account { turn.lane.scope.of_account() } else { turn.lane.scope.clone() };
    RefusalRow {
        scope,
        cause: if whole_account { "usage_limit" } else { "rate_limit" }.into(),
        kind: None,
        until_ms,
        source: source.into(),
        raw: raw.map(str::to_owned),
        barren: turn.grant.barren,
    }
}

fn evidence(n: u32, received_ms: i64, refusal: &RefusalRow) -> EvidenceRow {
    let named = refusal.source != "curve";
    let kind = if refusal.source.starts_with('/') { SourceKind::Body } else { SourceKind::Header };
    let candidate = |name: &str, at_ms: i64, verdict: Verdict, why: &str| Candidate {
        source: kind,
        name: name.into(),
        raw: refusal.raw.clone(),
        at_ms: Some(at_ms),
        kind: None,
        remaining: None,
        verdict,
        why: why.into(),
    };
    let candidates = [
        candidate(
            "x-ratelimit-reset-requests",
            refusal.until_ms - 12_000,
            Verdict::Earlier,
            "stands, but ends 12 s before",
        ),
        candidate(&refusal.source, refusal.until_ms, Verdict::Selected, "the latest that stands"),
    ];
    EvidenceRow {
        n,
        received_ms,
        reset_at_ms: named.then_some(refusal.until_ms),
        resume_at_ms: named.then_some(refusal.until_ms),
        skew_ms: 0,
        source_kind: named.then(|| kind.as_str().to_owned()),
        source_name: named.then(|| refusal.source.clone()),
        raw: refusal.raw.clone().filter(|_| named),
        limit_kind: None,
        cause: refusal.cause.clone(),
        rule: None,
        rules_version: 1,
        candidates: if named { candidates.into() } else { Vec::new() },
    }
}
