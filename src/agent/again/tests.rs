use super::*;
use crate::agent::{Ended, Entry, Step, job_text, next_call, next_step, response};
use crate::provider::{Answer, Call};
use crate::recovery::Then;
use crate::store::{JobId, LaneKey, ScheduleId, ScopeKey, Usage};
use serde_json::{Value, json};

const NOW_MS: i64 = 1_790_000_000_000;

fn directory() -> Directory {
    let account = ScopeKey { provider: "p".into(), account: "a".into(), model: String::new() };
    let entry = Entry { account, adapter: "openai".into(), missing_key: None, policy: "tiered".into() };
    Directory { entries: ["e", "other"].map(|name| (name.to_owned(), entry.clone())).into(), ..Directory::default() }
}

fn job(spec: &str, state: JobState) -> JobRow {
    let scope = ScopeKey { provider: "p".into(), account: "a".into(), model: "m".into() };
    JobRow {
        id: JobId::fresh(),
        state,
        deferred: false,
        lane: LaneKey { queue: "default".into(), tenant: String::new(), scope },
        entry: "e".into(),
        priority: 7,
        labels: vec![("k".into(), "v".into())],
        spec: spec.into(),
        result: None,
        error: None,
        created_ms: 0,
        finished_ms: Some(5),
        deadline_ms: None,
        retry_of: None,
        seq: None,
        due_ms: None,
        executions: None,
        deferrals: None,
        wait_until_ms: None,
        hold: None,
        paused: None,
        queue_paused: None,
        schedule: None,
    }
}

fn answer(text: &str) -> Answer {
    let usage = Usage { input_tokens: Some(1), output_tokens: Some(2), total_tokens: Some(3) };
    let finish_reason = Some("stop".to_owned());
    let (tool_calls, text) = (Vec::new(), text.to_owned());
    Answer {
        text,
        reasoning: None,
        tool_calls,
        finish_reason,
        usage,
        provider_model: None,
        request_id: None,
        raw: None,
    }
}

fn whole(seq: u32, text: &str) -> (u32, Option<String>, String) {
    (seq, None, response::of_answer(&answer(text)))
}

fn cut(seq: u32, text: &str) -> (u32, Option<String>, String) {
    (seq, Some("stalled".to_owned()), response::of_partial(text).unwrap())
}

fn go_on(seq: u32) -> InboxRow {
    step::continuation("stalled", seq, 1)
}

fn message(seq: u32, text: &str) -> InboxRow {
    InboxRow { seq, kind: "message".into(), body: json!({"role": "user", "content": text}).to_string(), at_ms: 1 }
}

const SPEC: &str = r#"{"model" : "m","input":"go"}"#;

fn retried(state: JobState, history: &History) -> NewJob {
    again(&job(SPEC, state), history, &directory(), NOW_MS).unwrap()
}

/// The kinds and places of what is taken over.
fn shape(new: &NewJob) -> Vec<(&str, u32)> {
    new.carried.iter().map(|row| (row.kind.as_str(), row.seq)).collect()
}

fn taken(new: &NewJob) -> History {
    History { responses: Vec::new(), inbox: new.carried.clone() }
}

fn sent(new: &NewJob) -> Vec<String> {
    let spec = JobSpec::parse(&new.spec).unwrap();
    let Call::Chat(call) = next_call(&spec, &taken(new)) else { panic!("a chat") };
    call.messages.into_iter().map(|message| message.content.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_that_is_sent_at_most_once_is_retried_as_such() {
    let spec = r#"{"model":"m","input":"go","delivery":"at_most_once"}"#;
    for state in [JobState::Failed, JobState::Cancelled, JobState::Succeeded] {
        assert!(again(&job(spec, state), &History::default(), &directory(), NOW_MS).unwrap().once);
        assert!(!retried(state, &History::default()).once);
    }
}

#[test]
fn a_retry_is_the_same_job_anew() {
    let spec = r#"{"model" : "m","input":"go","priority":3,"labels":{"k":"v"},"idempotency_key":"own","tenant":"t",
        "queue":"q","deadline":"1h","not_before":"5m"}"#;
    let old = JobRow { schedule: Some(ScheduleId::fresh()), ..job(spec, JobState::Failed) };
    let new = again(&old, &History::default(), &directory(), NOW_MS).unwrap();
    assert_eq!((new.spec.as_str(), new.retry_of, new.schedule), (spec, Some(old.id), old.schedule));
    assert_ne!(new.id, old.id);
    assert_eq!((new.idempotency_key, new.priority, new.entry.as_str()), (None, 7, "e"));
    assert_eq!((new.lane.queue.as_str(), new.lane.tenant.as_str(), new.labels), ("q", "t", old.labels));
    assert_eq!((new.deadline_ms, new.due_ms), (Some(NOW_MS + 3_600_000), Some(NOW_MS + 300_000)));
    assert_eq!((new.carried.len(), new.first_seq, new.created_ms), (0, 1, NOW_MS));
}

#[test]
fn what_cannot_be_retried_says_why() {
    let said = |spec: &str, state| {
        again(&job(spec, state), &History::default(), &directory(), NOW_MS).unwrap_err().to_string()
    };
    for state in [JobState::Queued, JobState::Running, JobState::RequiresAction] {
        assert!(said(SPEC, state).starts_with("/state: the job has not ended"));
    }
    let late = r#"{"model":"m","input":"go","deadline":"2026-01-01T00:00:00Z"}"#;
    assert_eq!(said(late, JobState::Failed), "/deadline: passed 263 d 14 h ago");
    let gone = r#"{"model":"m","input":"go","provider":"gone"}"#;
    assert_eq!(said(gone, JobState::Failed), "/provider: `gone` is not configured; configured are: e, other");
    let begun = r#"{"model":"m","input":"go","not_before":"2026-01-01T00:00:00Z"}"#;
    let new = again(&job(begun, JobState::Failed), &History::default(), &directory(), NOW_MS).unwrap();
    assert_eq!(new.due_ms, None, "a beginning that has passed keeps nobody");
}

#[test]
fn a_failed_job_goes_on_from_its_last_good_turn() {
    let history = History { responses: vec![whole(1, "one"), cut(2, "tw")], inbox: vec![message(2, "more"), go_on(3)] };
    let new = retried(JobState::Failed, &history);
    assert_eq!(shape(&new), [("answer", 1), ("message", 2), ("answer", 2), ("continuation", 3)]);
    assert_eq!(new.first_seq, 4);
    let sent = sent(&new);
    assert_eq!(sent[..4], ["go", "one", "more", "tw"]);
    assert!(sent[4].starts_with("Your answer was cut off"));
    // The carried body is as documented.
    let body: Value = serde_json::from_str(&new.carried[2].body).unwrap();
    assert_eq!((&body["cut"], &body["response"]["text"]), (&json!("stalled"), &json!("tw")));
    assert!(new.carried[0].body.starts_with(r#"{"cut":null,"response":{"text":"one","#), "{}", new.carried[0].body);
    // The text is whole, turns and tokens are the new job's own.
    let spec = JobSpec::parse(SPEC).unwrap();
    let step = next_step(&spec, &taken(&new), &Ended::Completed(&answer("o")), 4, 0, NOW_MS);
    let Step::FinalUnlessTold { result: Some(result) } = step else { panic!("{step:?}") };
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!((&result["text"], &result["turns"]), (&json!("two"), &json!(1)));
    assert_eq!(result["usage"]["total_tokens"], 3);
}

#[test]
fn a_cut_that_nobody_was_asked_to_go_on_with_is_gone_on_with() {
    let history = History { responses: vec![cut(1, "half")], inbox: vec![message(2, "and?")] };
    let error = json!({"code": codes::TURN_LIMIT, "message": "", "class": null, "retryable": false}).to_string();
    let spent = JobRow { error: Some(error), ..job(SPEC, JobState::Failed) };
    let new = again(&spent, &history, &directory(), NOW_MS).unwrap();
    assert_eq!(shape(&retried(JobState::Cancelled, &history)), shape(&new), "cancelled as its cut was written");
    assert_eq!(shape(&new), [("answer", 1), ("message", 2), ("continuation", 2)]);
    assert_eq!((new.first_seq, job_text(&taken(&new), "")), (3, "half".to_owned()));
    let sent = sent(&new);
    assert_eq!((sent.len(), sent[1].as_str()), (3, "half"), "the message waits for the whole answer");
    // One that was accepted as it stood, and whose follow-up failed, is whole.
    let new = retried(JobState::Failed, &history);
    assert_eq!((shape(&new), new.first_seq), (vec![("answer", 1), ("message", 2)], 3));
}

#[test]
fn a_succeeded_job_is_asked_its_last_question_again() {
    let history = History {
        responses: vec![whole(1, "one"), cut(2, "t"), cut(3, "w"), whole(4, "o")],
        inbox: vec![message(2, "more"), go_on(3), message(3, "late"), go_on(4)],
    };
    let new = retried(JobState::Succeeded, &history);
    assert_eq!(shape(&new), [("answer", 1), ("message", 2), ("message", 3)]);
    assert_eq!((new.first_seq, sent(&new)), (4, ["go", "one", "more", "late"].map(str::to_owned).to_vec()));
    let only = History { responses: vec![whole(1, "one")], inbox: Vec::new() };
    let new = retried(JobState::Succeeded, &only);
    assert_eq!((new.carried.len(), new.first_seq), (0, 1));
    // An accepted cut is an answer like any other.
    let accepted = History { responses: vec![whole(1, "one"), cut(2, "half")], inbox: vec![message(2, "more")] };
    assert_eq!(shape(&retried(JobState::Succeeded, &accepted)), [("answer", 1), ("message", 2)]);
}

#[test]
fn a_retry_of_a_retry_takes_over_what_that_took_over() {
    let first = History { responses: vec![cut(1, "Once ")], inbox: vec![go_on(2)] };
    let second = retried(JobState::Failed, &first);
    let mut history = taken(&second);
    history.responses.push(cut(second.first_seq, "upon "));
    history.inbox.push(go_on(second.first_seq + 1));
    let third = retried(JobState::Cancelled, &history);
    assert_eq!(shape(&third), [("answer", 1), ("continuation", 2), ("answer", 3), ("continuation", 4)]);
    assert_eq!((third.first_seq, job_text(&taken(&third), "a time")), (5, "Once upon a time".to_owned()));
    // Succeeded in two jobs, it is asked again from the first piece on.
    history.responses.push(whole(second.first_seq + 1, "a time"));
    assert_eq!(retried(JobState::Succeeded, &history).carried, []);
}

#[test]
fn turns_are_a_jobs_own() {
    let spec = JobSpec::parse(r#"{"model":"m","input":"go","max_turns":2}"#).unwrap();
    let history = History { responses: vec![cut(1, "a"), cut(2, "b")], inbox: vec![go_on(2)] };
    let new = retried(JobState::Cancelled, &history);
    assert_eq!(turns_left(&spec, &taken(&new)), 1);
    let ended = Ended::Truncated { text: "c", cut: "stalled", then: Then::Continue { not_before_ms: None } };
    let step = next_step(&spec, &taken(&new), &ended, new.first_seq, 0, NOW_MS);
    assert!(matches!(step, Step::Turn { .. }), "{step:?}");
    let mut then = taken(&new);
    then.responses.push(cut(new.first_seq, "c"));
    assert_eq!(turns_left(&spec, &then), 0);
    let step = next_step(&spec, &then, &ended, new.first_seq + 1, 0, NOW_MS);
    assert!(matches!(step, Step::Final { state: JobState::Failed, .. }), "{step:?}");
}

#[test]
fn a_raw_job_takes_nothing_over() {
    let raw = r#"{"model":"m","raw":{"path":"/v1/x","body":{}}}"#;
    let history = History { responses: vec![whole(1, "")], inbox: Vec::new() };
    let new = again(&job(raw, JobState::Failed), &history, &directory(), NOW_MS).unwrap();
    assert_eq!((new.carried.len(), new.first_seq), (0, 1));
}

#[test]
fn an_answer_that_cannot_be_read_is_no_obstacle() {
    let history = History {
        responses: vec![(1, Some("stalled".into()), "{".into()), cut(2, "b")],
        inbox: vec![go_on(2), go_on(3)],
    };
    let new = retried(JobState::Failed, &history);
    assert_eq!(new.carried[0].body, r#"{"cut":"stalled","response":null}"#);
    assert_eq!(job_text(&taken(&new), "c"), "bc");
}
