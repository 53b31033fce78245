//! Real failures, as people met them: what `classify` makes of each, against what is right.
//!
//! A line's `also_acceptable` names fields whose other value is defensible; a kind that only prose names may be null.

use reprieve::cli::classify;
use reprieve::failure::Rules;
use reprieve::recovery::Policy;
use serde_json::Value;

const CORPUS: &str = include_str!("../corpus/failures.jsonl");
/// Their siblings: of more vendors, relays and client libraries, and what those put around an error. `recalled` lines are
/// written after a vendor's known wording, the others after what somebody met.
const MORE: &str = include_str!("../corpus/more.jsonl");
/// A reset read from prose, or rounded by its vendor, may differ by this much.
const TOLERANCE_MS: i64 = 1_500;
/// Of so many lines one may be read wrong.
const ONE_WRONG_IN: usize = 33;

/// The compared fields of one reading.
#[derive(Debug, PartialEq)]
struct Fields {
    cause: Value,
    class: Value,
    action: Value,
    kind: Value,
    source: Option<(String, String)>,
    reset_at_ms: Option<i64>,
}

fn read(answer: &Value) -> Fields {
    let limit = &answer["model_failure"]["limit"];
    let source = &limit["reset_source"];
    let action = match answer["recovery"]["action"].as_str() {
        Some("requeue") => Value::from("defer"),
        Some("stop") => Value::from("fail"),
        _ => answer["recovery"]["action"].clone(),
    };
    Fields {
        cause: answer["cause"].clone(),
        class: answer["class"].clone(),
        action,
        kind: limit["kind"].clone(),
        source: pair(&source["kind"], &source["name"]),
        reset_at_ms: limit["reset_at_ms"].as_i64(),
    }
}

fn pair(kind: &Value, name: &Value) -> Option<(String, String)> {
    Some((kind.as_str()?.to_owned(), name.as_str().unwrap_or_default().to_lowercase()))
}

fn misses(row: &Value, answer: &Value) -> Vec<String> {
    let got = read(answer);
    let (want, also) = (&row["expected"], &row["also_acceptable"]);
    if also.get("cause").is_some_and(Value::is_null) && got.cause.is_null() {
        return Vec::new();
    }
    let limited = |cause: &Value| matches!(cause.as_str(), Some("rate_limit" | "usage_limit"));
    let reset = &want["reset"];
    let source = pair(&reset["source_kind"], &reset["source_name"]);
    let reset_at_ms = reset["at_ms"].as_i64();
    let retry = match also["retry"].as_str() {
        Some("in_place") => "retry_in_place",
        Some("deferred") => "defer",
        Some("terminal") => "fail",
        _ => "",
    };
    let mut out = Vec::new();
    let mut check = |field: &str, ok: bool, got: String, want: String| {
        if !ok {
            out.push(format!("{field}: got {got}, want {want}"));
        }
    };
    let either =
        |field: &str, got: &Value, want: &Value| got == want || also.get(field).is_some_and(|also| got == also);
    check("cause", either("cause", &got.cause, &want["cause"]), got.cause.to_string(), want["cause"].to_string());
    check("class", either("class", &got.class, &want["class"]), got.class.to_string(), want["class"].to_string());
    let action = got.action == want["action"] || got.action == retry;
    check("action", action, got.action.to_string(), want["action"].to_string());
    let unlimited = !limited(&got.cause) && !limited(&want["cause"]);
    let body = row["input"]["body"].as_str().unwrap_or_default();
    let spelt = ["requests", "tokens", "monthly_usage_limit"]
        .iter()
        .any(|kind| ["type", "code"].iter().any(|name| body.contains(&format!("\"{name}\":\"{kind}\""))))
        || source.as_ref().is_some_and(|(_, name)| name.contains("requests") || name.contains("tokens"));
    let kind = either("limit_kind", &got.kind, &want["limit_kind"]) || (got.kind.is_null() && (unlimited || !spelt));
    check("limit_kind", kind, got.kind.to_string(), want["limit_kind"].to_string());
    let free = also.get("reset").is_some();
    let prose = want["prose_only"] == true || row["provenance"] == "synthetic_edge";
    let same_kind = got.source.as_ref().map(|(kind, _)| kind) == source.as_ref().map(|(kind, _)| kind);
    let ok = got.source == source || free || (prose && same_kind) || (unlimited && got.source.is_none());
    check("reset_source", ok, format!("{:?}", got.source), format!("{source:?}"));
    let near = match (got.reset_at_ms, reset_at_ms) {
        (Some(got), Some(want)) => (got - want).abs() <= TOLERANCE_MS,
        (got, want) => got == want,
    };
    let ok = near || free || (unlimited && got.reset_at_ms.is_none());
    check("reset_at", ok, format!("{:?}", got.reset_at_ms), format!("{reset_at_ms:?}"));
    out
}

/// The lines of a collection that are read wrong, and how many there are.
fn wrong(corpus: &str) -> (Vec<String>, usize) {
    let rows: Vec<Value> = corpus.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let feed = rows.iter().map(|row| row["input"].to_string()).collect::<Vec<_>>().join("\n");
    let mut out = Vec::new();
    assert!(classify::run(feed.as_bytes(), &mut out, &Rules::embedded(), &Policy::tiered(), 0).unwrap());
    let answers: Vec<Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), rows.len());
    let mut wrong = Vec::new();
    for (row, answer) in rows.iter().zip(&answers) {
        let misses = misses(row, answer);
        if !misses.is_empty() {
            wrong.push(format!("{}: {}", row["id"], misses.join("; ")));
        }
    }
    (wrong, rows.len())
}

#[test]
fn the_collection_of_real_failures_is_read_right() {
    let (wrong, of) = wrong(CORPUS);
    assert!(wrong.len() * ONE_WRONG_IN <= of, "{} of {of} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn their_siblings_are_read_right_to_the_last() {
    let (wrong, of) = wrong(MORE);
    assert!(of > 600);
    assert!(wrong.is_empty(), "{} of {of} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_bad_line_is_answered_in_its_place() {
    let feed = "{\"http_status\":429}\nnonsense\n{\"http_status\":500}\n";
    let mut out = Vec::new();
    assert!(!classify::run(feed.as_bytes(), &mut out, &Rules::embedded(), &Policy::tiered(), 7).unwrap());
    let lines: Vec<Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["class"], &lines[2]["class"]), (&Value::from("rate_limit"), &Value::from("unavailable")));
    assert!(lines[1]["error"].is_string());
}

#[test]
fn prose_that_only_contains_a_known_sentence_falls_to_the_status() {
    let cases = [
        (400, "Your tool said: insufficient balance on line 3", "invalid_request"),
        (
            400,
            "messages.2: 'Your credit balance is too low to access the Anthropic API' is no valid role",
            "invalid_request",
        ),
        (500, "the upstream log reads prompt is too long: 5 tokens > 4 maximum, perhaps", "unavailable"),
        (429, "nobody exceeded your current quota here", "rate_limit"),
        (429, "Usage of quota exceeded words is fine", "rate_limit"),
        (418, "Rate limit exceeded", "provider_error"),
        // What relays and clients put around a sentence opens no door for it.
        (400, "429 Too many requests, please wait before trying again.", "invalid_request"),
        (404, "503 The model is overloaded", "invalid_request"),
        (400, "Bad request: Too many requests", "invalid_request"),
        (422, "BAD_TOOL: Too many tokens, please wait before trying again", "invalid_request"),
        (
            400,
            "An error occurred (X) when calling the Y operation: Too many requests, please wait before trying again.",
            "invalid_request",
        ),
        (400, "Maximum retries reached for this month", "invalid_request"),
        (500, "Widget count and account balance is zero", "unavailable"),
    ];
    for (status, message, class) in cases {
        let body = serde_json::json!({"error": {"message": message, "code": "never_heard_of_it"}});
        let failure = crate::read(Some(status), &[], Some(body));
        assert_eq!(failure.class.as_str(), class, "{message}");
        assert_eq!(failure.rule, Some(format!("status.{status}")), "{message}");
    }
}
