//! Short ways to say what tests need.

use super::Harness;
use reprieve::failure::{Candidate, SourceKind, Verdict};
use reprieve::store::*;

/// Where every test's clock starts.
pub const T0: i64 = 1_790_000_000_000;
pub const LEASE_MS: i64 = 30_000;

pub fn scope(model: &str) -> ScopeKey {
    ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: model.into() }
}

pub fn lane(queue: &str, tenant: &str, model: &str) -> LaneKey {
    LaneKey { queue: queue.into(), tenant: tenant.into(), scope: scope(model) }
}

/// A job of the default queue, accepted at the start.
pub fn job(model: &str) -> NewJob {
    let id = JobId::fresh();
    NewJob {
        id,
        lane: lane("default", "", model),
        entry: "example".into(),
        idempotency_key: None,
        digest: "d".into(),
        spec: format!("{{\"model\":\"{model}\",\"input\":\"{id}\"}}"),
        priority: 0,
        due_ms: None,
        deadline_ms: None,
        labels: Vec::new(),
        retry_of: None,
        carried: Vec::new(),
        first_seq: 1,
        once: false,
        schedule: None,
        created_ms: T0,
    }
}

pub fn jobs(model: &str, n: usize) -> Vec<NewJob> {
    (0..n).map(|_| job(model)).collect()
}

pub async fn submit<H: Harness>(h: &H, new: Vec<NewJob>) -> Vec<JobId> {
    let ids: Vec<JobId> = new.iter().map(|job| job.id).collect();
    let answers = h.store().submit(new).await.unwrap();
    assert_eq!(answers, ids.iter().map(|id| Submitted::Accepted(*id)).collect::<Vec<_>>());
    ids
}

pub async fn worker<H: Harness>(h: &H, now_ms: i64) -> WorkerId {
    let id = WorkerId::fresh();
    let row = WorkerRow {
        id,
        queues: Vec::new(),
        started_ms: now_ms,
        heartbeat_ms: now_ms,
        lease_ms: LEASE_MS,
        concurrency: 64,
    };
    h.store().register_worker(row).await.unwrap();
    id
}

pub async fn claim<H: Harness>(h: &H, worker: WorkerId, room: u32, now_ms: i64) -> Vec<ClaimedTurn> {
    h.store().claim(ClaimRequest { worker, queues: Vec::new(), without: Vec::new(), room, now_ms }).await.unwrap()
}

/// No limit worth mentioning, so that a test about something else is not about flow.
pub async fn wide<H: Harness>(h: &H, models: &[&str]) {
    let configs = models.iter().map(|model| ScopeConfig { scope: scope(model), max_in_flight: Some(1_000) }).collect();
    h.store().configure_scopes(configs).await.unwrap();
}

pub fn record(turn: &ClaimedTurn, outcome: Outcome, now_ms: i64) -> TurnRecord {
    TurnRecord {
        seq: turn.seq,
        outcome,
        cut: None,
        started_ms: turn.grant.permit_ms,
        ended_ms: now_ms,
        attempts: Some(1),
        error: None,
        response: Some("{\"text\":\"hello\"}".into()),
        usage: Usage { input_tokens: Some(3), output_tokens: Some(5), total_tokens: Some(8) },
        class: None,
        cause: None,
        code: None,
        http_status: Some(200),
        rule: None,
        rules_version: None,
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

pub fn failed_record(turn: &ClaimedTurn, outcome: Outcome, cause: &str, now_ms: i64) -> TurnRecord {
    TurnRecord {
        error: Some(error(cause)),
        response: None,
        class: Some("rate_limit".into()),
        cause: Some(cause.into()),
        code: Some("model_incomplete".into()),
        http_status: Some(429),
        rule: Some("r".into()),
        rules_version: Some(1),
        finish_reason: None,
        ..record(turn, outcome, now_ms)
    }
}

pub fn error(cause: &str) -> String {
    format!("{{\"code\":\"model_incomplete\",\"message\":\"model_error: {cause}\",\"class\":null,\"retryable\":true}}")
}

pub fn send(turn: &ClaimedTurn, n: u32, outcome: &str, now_ms: i64) -> SendRow {
    SendRow {
        n,
        permit_ms: turn.grant.permit_ms,
        started_ms: turn.grant.permit_ms,
        first_byte_ms: Some(now_ms),
        ended_ms: now_ms,
        outcome: outcome.into(),
        http_status: Some(200),
        cause: None,
        class: None,
        error: None,
        wait_ms: None,
        wait_source: None,
        tests: turn.grant.probe.and_then(|probe| probe.tests),
        tests_resume_ms: turn.grant.probe.map(|probe| probe.resume_ms),
    }
}

pub fn evidence(n: u32, received_ms: i64, resume_at_ms: i64) -> EvidenceRow {
    EvidenceRow {
        n,
        received_ms,
        reset_at_ms: Some(resume_at_ms),
        resume_at_ms: Some(resume_at_ms),
        skew_ms: 0,
        source_kind: Some("header".into()),
        source_name: Some("retry-after".into()),
        raw: Some("7".into()),
        limit_kind: None,
        cause: "rate_limit".into(),
        rule: Some("r".into()),
        rules_version: 1,
        candidates: vec![Candidate {
            source: SourceKind::Header,
            name: "retry-after".into(),
            raw: Some("7".into()),
            at_ms: Some(resume_at_ms),
            kind: None,
            remaining: None,
            verdict: Verdict::Selected,
            why: "the only one".into(),
        }],
    }
}

pub fn refusal(scope: ScopeKey, until_ms: i64, barren: u32) -> RefusalRow {
    RefusalRow {
        scope,
        cause: "rate_limit".into(),
        kind: None,
        until_ms,
        source: "retry-after".into(),
        raw: Some("7".into()),
        barren,
    }
}

/// A completed turn that ends its job.
pub fn success(worker: WorkerId, turn: &ClaimedTurn, now_ms: i64) -> Completion {
    Completion {
        worker,
        job_id: turn.job_id,
        fence: turn.fence,
        now_ms,
        record: record(turn, Outcome::Completed, now_ms),
        send: Some(send(turn, 1, "answered", now_ms)),
        evidence: None,
        refusal: None,
        probe: turn.grant.probe.map(|probe| probe.hold_id),
        answered: true,
        next: Next::Final { state: JobState::Succeeded, result: Some("{\"text\":\"hello\"}".into()), error: None },
    }
}

/// A refused turn that goes back behind the hold that it opens.
pub fn deferred(worker: WorkerId, turn: &ClaimedTurn, now_ms: i64, until_ms: i64) -> Completion {
    Completion {
        record: failed_record(turn, Outcome::Deferred, "rate_limit", now_ms),
        send: Some(SendRow { http_status: Some(429), ..send(turn, 1, "refused", now_ms) }),
        evidence: Some(evidence(1, now_ms, until_ms)),
        refusal: Some(refusal(turn.lane.scope.clone(), until_ms, turn.grant.barren)),
        answered: false,
        next: Next::Behind,
        ..success(worker, turn, now_ms)
    }
}

/// A turn that failed without a refusal and is due again.
pub fn requeued(worker: WorkerId, turn: &ClaimedTurn, now_ms: i64, due_ms: i64) -> Completion {
    Completion {
        record: failed_record(turn, Outcome::Requeued, "provider_error", now_ms),
        send: Some(SendRow { http_status: Some(503), ..send(turn, 1, "failed", now_ms) }),
        answered: false,
        next: Next::Again { due_ms, counts: true },
        ..success(worker, turn, now_ms)
    }
}

/// A send that was refused and will be made again in place.
pub fn setback(worker: WorkerId, turn: &ClaimedTurn, n: u32, now_ms: i64, until_ms: i64) -> Setback {
    Setback {
        worker,
        job_id: turn.job_id,
        fence: turn.fence,
        now_ms,
        send: SendRow {
            http_status: Some(429),
            cause: Some("rate_limit".into()),
            class: Some("rate_limit".into()),
            error: Some(error("rate_limit")),
            wait_ms: Some(until_ms - now_ms),
            wait_source: Some("retry-after".into()),
            ..send(turn, n, "refused", now_ms)
        },
        evidence: Some(evidence(n, now_ms, until_ms)),
        refusal: Some(refusal(turn.lane.scope.clone(), until_ms, turn.grant.barren)),
        probe: turn.grant.probe.map(|probe| probe.hold_id),
        wait_until_ms: until_ms,
    }
}

pub async fn complete_one<H: Harness>(h: &H, completion: Completion) -> Applied {
    h.store().complete(vec![completion]).await.unwrap()[0]
}

pub async fn permit<H: Harness>(h: &H, turn: &ClaimedTurn, now_ms: i64) -> Permit {
    h.store().permit(PermitRequest { job_id: turn.job_id, fence: turn.fence, now_ms }).await.unwrap()
}

pub async fn get<H: Harness>(h: &H, id: JobId) -> JobRow {
    h.store().job(id).await.unwrap().expect("the job is there")
}

pub async fn open_holds<H: Harness>(h: &H) -> Vec<HoldRow> {
    h.store().holds(Query::default()).await.unwrap()
}

pub fn pause() -> Pause {
    Pause { since_ms: T0, by: "ops".into(), reason: Some("to look at it".into()) }
}

pub async fn steer<H: Harness>(h: &H, ids: &[JobId], how: Steer, now_ms: i64) -> Vec<SteerOutcome> {
    h.store().steer(ids.to_vec(), how, now_ms).await.unwrap()
}

/// Posts messages, each the JSON text of one.
pub async fn post<H: Harness>(h: &H, job: JobId, key: Option<&str>, messages: &[&str]) -> Posted {
    let messages = messages.iter().map(|message| (*message).to_owned()).collect();
    let new = NewMessages { job, key: key.map(str::to_owned), messages, last_turn: None, now_ms: T0 + 1 };
    h.store().post(new).await.unwrap()
}

/// The transcript's inbox, as `(seq, kind, body)`.
pub async fn inbox<H: Harness>(h: &H, job: JobId) -> Vec<(u32, String, String)> {
    let history = h.store().history(job).await.unwrap();
    history.inbox.into_iter().map(|row| (row.seq, row.kind, row.body)).collect()
}

/// A completed turn that ends its job unless it was told something.
pub fn ended_unless_told(worker: WorkerId, turn: &ClaimedTurn, now_ms: i64) -> Completion {
    Completion { next: Next::FinalUnlessTold { result: Some("{}".into()) }, ..success(worker, turn, now_ms) }
}

/// A cut answer whose job goes on from where it ends.
pub fn cut(worker: WorkerId, turn: &ClaimedTurn, now_ms: i64) -> Completion {
    let row = InboxRow { seq: turn.seq + 1, kind: "continuation".into(), body: "\"go on\"".into(), at_ms: now_ms };
    let mut end = success(worker, turn, now_ms);
    end.record.outcome = Outcome::Truncated;
    end.record.cut = Some("output_limit".into());
    end.next = Next::Turn { due_ms: None, repairs: turn.repairs + 1, inbox: vec![row] };
    end
}
