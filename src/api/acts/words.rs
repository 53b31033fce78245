//! An act and its filter, in words.

use super::Act;
use crate::api::words;
use crate::store::Query;

/// The filter of jobs in words: `jobs in state failed, with cause rate_limit, of queue nightly, created before …`.
#[must_use]
pub fn in_words(query: &Query, now_ms: i64) -> String {
    let mut parts = Vec::new();
    let mut any_of = |what: &str, values: &[String]| {
        if !values.is_empty() {
            let shown: Vec<&str> = values.iter().map(|value| if value.is_empty() { "(none)" } else { value }).collect();
            parts.push(format!("{what} {}", shown.join(" or ")));
        }
    };
    any_of("in state", &query.states);
    any_of("waiting for", &query.whys);
    any_of("with cause", &query.causes);
    any_of("with class", &query.classes);
    any_of("with code", &query.codes);
    any_of("with HTTP status", &query.http.iter().map(ToString::to_string).collect::<Vec<_>>());
    any_of("of queue", &query.queues);
    any_of("of tenant", &query.tenants);
    any_of("of provider", &query.providers);
    any_of("of account", &query.accounts);
    any_of("of model", &query.models);
    for (key, value) in &query.labels {
        parts.push(format!("labelled {key}={value}"));
    }
    if let Some(schedule) = query.schedule {
        parts.push(format!("of schedule {schedule}"));
    }
    let what = if query.by_end { "ended" } else { "created" };
    if let Some(since_ms) = query.since_ms {
        parts.push(format!("{what} since {}", words::instant_and_distance(since_ms, now_ms)));
    }
    // A frozen filter ends behind its own instant: that is said as such.
    let frozen = query.to_id.is_some() || query.until_ms == Some(query.now_ms.saturating_add(1));
    if let Some(until_ms) = query.until_ms.filter(|until_ms| !frozen || *until_ms <= query.now_ms) {
        parts.push(format!("{what} before {}", words::instant_and_distance(until_ms, now_ms)));
    }
    if frozen {
        parts.push(format!("as of {}", words::instant(query.now_ms, now_ms)));
    }
    if parts.is_empty() { "all jobs".to_owned() } else { format!("jobs {}", parts.join(", ")) }
}

/// What follows from the act.
#[must_use]
pub fn consequence(act: &Act) -> &'static str {
    match act {
        Act::Cancel => "waiting ones end at once, running ones are asked to stop; a cancelled job stays cancelled",
        Act::Retry => "each goes on as a new job with the transcript so far, and sends again; at_most_once jobs too",
        Act::Delete => "they and all that is kept of them (records, sends, evidence, results) are gone for good",
        Act::Pause(_) => "none of their turns starts until somebody resumes them; what runs finishes; deadlines run on",
        Act::Resume => "their turns are claimed again as their lanes have room; holds and paused queues still stand",
        Act::Requeue => "their own backoff ends now; holds stand, and so does `not_before`",
        Act::Reprioritise(_) => "their order within their queue and tenant changes; shares between queues do not",
    }
}
