use super::*;
use crate::agent::Entry;
use crate::store::JobState;
use crate::store::{JobId, LaneKey, ScopeKey};
use proptest::prelude::*;
use serde_json::json;

fn said(body: &Value) -> String {
    messages(&body.to_string()).unwrap_err().to_string()
}

#[test]
fn a_follow_up_is_an_input_a_message_or_several() {
    let user = r#"{"role":"user","content":"more"}"#;
    assert_eq!(messages(r#"{"input":"more"}"#).unwrap(), [user]);
    assert_eq!(messages(r#"{"content":"more","role":"user"}"#).unwrap(), [user]);
    let several = json!({"messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "1.0", "n": 1.0}]},
    ]});
    let read = messages(&several.to_string()).unwrap();
    assert_eq!(read[0], r#"{"role":"system","content":"be brief"}"#);
    assert_eq!(read[1], r#"{"role":"user","content":[{"type":"text","text":"1.0","n":1.0}]}"#);
}

#[test]
fn what_is_wrong_with_a_follow_up_is_named_by_its_place() {
    for (body, expected) in [
        (json!({}), "/messages: is missing: give `messages`, `input`, or `role` and `content`"),
        (json!([]), "/: must be an object"),
        (json!({"input": "x", "messages": [{"role": "user", "content": "x"}]}), "/messages: stands beside `input`"),
        (json!({"input": ""}), "/input: must not be empty"),
        (json!({"input": "x", "model": "m"}), "/model: is unknown; known here: messages, input"),
        (json!({"role": "user", "content": "x", "input": "y"}), "/input: is unknown; known here: role, content"),
        (
            json!({"role": "assistant", "content": "x"}),
            "/role: must be `user` or `system`: a follow-up is no `assistant`",
        ),
        (json!({"messages": []}), "/messages: must not be empty"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "/messages/0/role: must be `user` or `system`"),
        (json!({"messages": [{"role": "bot", "content": "x"}]}), "/messages/0/role: must be one of: user, system"),
        (json!({"messages": [{"role": "user"}]}), "/messages/0/content: is missing"),
        (json!({"messages": [{"role": "user", "content": "x", "name": "n"}]}), "/messages/0/name: is unknown"),
        (json!({"messages": ["x"]}), "/messages/0/role: must be one of: user, system"),
    ] {
        let said = said(&body);
        assert!(said.starts_with(expected), "{body}: {said}");
    }
    assert!(messages(r#"{"input":"a\u0000"}"#).unwrap_err().problem.contains("NUL"));
    let many = json!({"messages": vec![json!({"role": "user", "content": "x"}); limits::MESSAGES + 1]});
    assert!(said(&many).contains("at most 10000 are taken"));
    let large = format!("{{\"input\":\"{}\"}}", "x".repeat(limits::JOB_BYTES));
    assert!(messages(&large).unwrap_err().problem.contains("at most"));
}

fn job(spec: &str, state: JobState) -> JobRow {
    let scope = ScopeKey { provider: "p".into(), account: "a".into(), model: "m".into() };
    JobRow {
        id: JobId::fresh(),
        state,
        deferred: false,
        lane: LaneKey { queue: "default".into(), tenant: String::new(), scope },
        entry: "e".into(),
        priority: 0,
        labels: Vec::new(),
        spec: spec.into(),
        result: None,
        error: None,
        created_ms: 0,
        finished_ms: None,
        deadline_ms: None,
        retry_of: None,
        seq: Some(1),
        due_ms: None,
        executions: Some(0),
        deferrals: Some(0),
        wait_until_ms: None,
        hold: None,
        paused: None,
        queue_paused: None,
        schedule: None,
    }
}

#[test]
fn only_a_job_that_would_answer_is_told_anything() {
    let account = ScopeKey { provider: "p".into(), account: "a".into(), model: String::new() };
    let entry = Entry { account, adapter: "openai".into(), missing_key: None, policy: "tiered".into() };
    let directory = Directory { entries: [("e".to_owned(), entry)].into(), ..Directory::default() };
    let more = messages(r#"{"input":"more"}"#).unwrap();
    let check = |spec: &str, state, answers: u32, messages: &[String]| {
        let responses = (1..=answers).map(|seq| (seq, None, String::new())).collect();
        let history = History { responses, inbox: Vec::new() };
        check_messages(&job(spec, state), &history, messages, &directory).map_err(|error| error.to_string())
    };
    let two = r#"{"model":"m","input":"x","max_turns":2}"#;
    // The last turn that it may have: whether it is still to come is the store's to say.
    assert_eq!(check(two, JobState::Running, 0, &more), Ok(2));
    assert_eq!(check(two, JobState::Running, 1, &more), Ok(2));
    assert_eq!(check(r#"{"model":"m","input":"x"}"#, JobState::Queued, 3, &more), Ok(50));
    let long = ["x".repeat(limits::TRANSCRIPT_BYTES + 1)];
    assert!(check(two, JobState::Queued, 0, &long).unwrap_err().starts_with("/messages: would make"));
    let raw = r#"{"model":"m","raw":{"path":"/v1/x","body":{}}}"#;
    assert!(check(raw, JobState::Queued, 0, &more).unwrap_err().starts_with("/raw: "));
    let picture =
        [json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "gopher:x"}}]}).to_string()];
    let refused = check(two, JobState::Queued, 0, &picture).unwrap_err();
    assert!(refused.starts_with("/messages/0/content/0"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_told_is_kept_as_it_was(text in "[^\\x00]{1,40}") {
        let body = json!({"messages": [{"role": "user", "content": text}]}).to_string();
        let read: Message = serde_json::from_str(&messages(&body).unwrap()[0]).unwrap();
        prop_assert_eq!(read.content, Value::String(text));
    }
}
