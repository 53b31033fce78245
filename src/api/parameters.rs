//! One set of parameters for every list, on the command line and over HTTP: names, values, and what is refused.

use super::{Kind, Problem};
use crate::duration;
use crate::store::Query;

/// A page's size where none is said, and at most.
pub const LIMIT: u32 = 50;
pub const MAX_LIMIT: u32 = 1_000;

pub const STATES: [&str; 8] =
    ["queued", "deferred", "waiting", "running", "requires_action", "succeeded", "failed", "cancelled"];
pub const CAUSES: [&str; 9] = [
    "rate_limit",
    "usage_limit",
    "context_limit",
    "output_limit",
    "provider_error",
    "transport",
    "incomplete",
    "deadline",
    "cancelled",
];
pub const CLASSES: [&str; 9] = [
    "rate_limit",
    "quota",
    "authentication",
    "content_filtered",
    "context_window_exceeded",
    "invalid_request",
    "timeout",
    "unavailable",
    "provider_error",
];
pub const VERDICTS: [&str; 7] =
    ["selected", "earlier", "not_exhausted", "other_kind", "malformed", "past", "implausible"];

/// What a list of jobs takes.
pub const JOBS: [&str; 11] =
    ["state", "queue", "tenant", "provider", "account", "model", "label.KEY", "since", "until", "limit", "cursor"];
/// Parameters of releases to come.
const NOT_YET: [&str; 12] =
    ["why", "code", "http", "phase", "rule", "time", "word", "by", "sort", "order", "format", "id"];

/// Reads parameters into a query. `allowed` are the names that this list takes (`label.KEY` for any label).
///
/// # Errors
/// The first unknown name or value, with what is allowed.
pub fn query(pairs: &[(String, String)], allowed: &[&str], now_ms: i64) -> Result<Query, Problem> {
    let mut query = Query { limit: LIMIT, now_ms, ..Query::default() };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in pairs {
        let folded = if name.starts_with("label.") { "label.KEY" } else { name.as_str() };
        if !allowed.contains(&folded) {
            let what = if NOT_YET.contains(&folded) { "is not supported by this release" } else { "is unknown" };
            return Err(wrong(name, &format!("the parameter `{}` {what}", name.escape_debug()), allowed));
        }
        if folded != "label.KEY" && seen.contains(&folded) {
            let what = format!("the parameter `{folded}` stands twice; several values are joined by commas");
            return Err(Problem::new(Kind::Parameter, what).at(folded));
        }
        seen.push(folded);
        set(&mut query, name, value, now_ms)?;
    }
    Ok(query)
}

fn set(query: &mut Query, name: &str, value: &str, now_ms: i64) -> Result<(), Problem> {
    match name {
        "state" => query.states = any_of(name, value, &STATES)?,
        "queue" => query.queues = names(value),
        "tenant" => query.tenants = names(value),
        "provider" => query.providers = names(value),
        "account" => query.accounts = names(value),
        "model" => query.models = names(value),
        "cause" => query.causes = any_of(name, value, &CAUSES)?,
        "class" => query.classes = any_of(name, value, &CLASSES)?,
        "source" => query.sources = names(value),
        "verdict" => query.verdicts = any_of(name, value, &VERDICTS)?,
        "include_retried" => query.include_retried = truth(name, value)?,
        "since" => query.since_ms = Some(instant(name, value, now_ms)?),
        "until" => query.until_ms = Some(instant(name, value, now_ms)?),
        "limit" => query.limit = limit(value)?,
        "cursor" => query.cursor = Some(value.to_owned()),
        label => match label.strip_prefix("label.") {
            Some(key) if !key.is_empty() => query.labels.push((key.to_owned(), value.to_owned())),
            _ => {
                let what = "a label is asked for as `label.KEY=VALUE`";
                return Err(Problem::new(Kind::Parameter, what).at(name));
            }
        },
    }
    Ok(())
}

/// A comma list of names.
fn names(value: &str) -> Vec<String> {
    value.split(',').map(|name| name.trim().to_owned()).collect()
}

/// A comma list of known words.
///
/// # Errors
/// The first word that is unknown, with those that are not.
pub fn any_of(name: &str, value: &str, known: &[&str]) -> Result<Vec<String>, Problem> {
    value
        .split(',')
        .map(|word| {
            let word = word.trim();
            if known.contains(&word) {
                Ok(word.to_owned())
            } else {
                Err(wrong(name, &format!("`{}` is no value of `{name}`", word.escape_debug()), known))
            }
        })
        .collect()
}

/// A duration before now, a date, or an instant (RFC 3339).
///
/// # Errors
/// What would be right.
pub fn instant(name: &str, value: &str, now_ms: i64) -> Result<i64, Problem> {
    if let Ok(ago_ms) = duration::parse_ms(value) {
        return Ok(now_ms.saturating_sub(ago_ms));
    }
    if let Ok(at) = value.parse::<jiff::Timestamp>() {
        return Ok(at.as_millisecond());
    }
    let midnight =
        value.parse::<jiff::civil::Date>().ok().and_then(|date| date.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok());
    midnight.map(|at| at.timestamp().as_millisecond()).ok_or_else(|| {
        let what = format!(
            "`{}` is no value of `{name}`; write how long ago (24h), a date (2026-11-30, UTC) or an instant \
             (2026-11-30T14:03:05Z)",
            value.escape_debug()
        );
        Problem::new(Kind::Parameter, what).at(name)
    })
}

fn limit(value: &str) -> Result<u32, Problem> {
    value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
        let what =
            format!("`{}` is no value of `limit`; write a whole number from 1 to {MAX_LIMIT}", value.escape_debug());
        Problem::new(Kind::Parameter, what).at("limit")
    })
}

fn truth(name: &str, value: &str) -> Result<bool, Problem> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(wrong(name, &format!("`{}` is no value of `{name}`", value.escape_debug()), &["1", "0"])),
    }
}

fn wrong(name: &str, what: &str, allowed: &[&str]) -> Problem {
    let allowed = if allowed.is_empty() {
        "none is taken here".to_owned()
    } else {
        format!("allowed are {}", allowed.join(", "))
    };
    Problem::new(Kind::Parameter, format!("{what}; {allowed}")).at(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Cause, Class, Verdict};

    fn ask(pairs: &[(&str, &str)]) -> Result<Query, Problem> {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        query(&pairs, &JOBS, 1_796_047_385_000)
    }

    #[test]
    fn parameters_become_a_query() {
        let query = ask(&[
            ("state", "queued,failed"),
            ("label.team", "a"),
            ("label.run", "7"),
            ("since", "24h"),
            ("until", "2026-11-30"),
            ("limit", "200"),
        ])
        .unwrap();
        assert_eq!(query.states, ["queued", "failed"]);
        assert_eq!(query.labels.len(), 2);
        assert_eq!(query.since_ms, Some(1_796_047_385_000 - 86_400_000));
        assert_eq!(query.until_ms, Some(1_795_996_800_000));
        assert_eq!((query.limit, query.now_ms), (200, 1_796_047_385_000));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let said: Vec<String> = [
            ("stat", "queued"),
            ("why", "hold"),
            ("state", "queued,dead"),
            ("since", "yesterday"),
            ("limit", "0"),
            ("label.", "x"),
            ("cause", "transport"),
        ]
        .iter()
        .map(|pair| ask(&[*pair]).unwrap_err().detail)
        .collect();
        insta::assert_snapshot!(said.join("\n"));
        assert!(ask(&[("queue", "a"), ("queue", "b")]).is_err());
    }

    #[test]
    fn the_words_are_those_of_the_reading() {
        let read = |word: &str| serde_json::from_value::<serde_json::Value>(word.into()).unwrap();
        for word in CAUSES {
            serde_json::from_value::<Cause>(read(word)).unwrap();
        }
        for word in CLASSES {
            serde_json::from_value::<Class>(read(word)).unwrap();
        }
        for word in VERDICTS {
            serde_json::from_value::<Verdict>(read(word)).unwrap();
        }
    }
}
