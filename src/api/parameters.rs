//! One set of parameters for every list, on the command line and over HTTP: names, values, and what is refused.

use super::{Kind, Problem};
use crate::duration;
use crate::store::{By, Query, ScheduleId, UsageBy};

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

/// What a waiting job waits for.
pub const WHYS: [&str; 8] = ["hold", "parked", "probe", "backoff", "not_before", "in_place", "line", "paused"];
/// What became of a named reset.
pub const WORDS: [&str; 5] = ["kept", "refused_again", "released", "cancelled", "not_tested"];
/// Where a transport failed.
pub const PHASES: [&str; 3] = ["connect", "headers", "read"];
/// Which instant `since` and `until` are of.
pub const TIMES: [&str; 2] = ["created", "ended"];
/// What failures are counted by.
pub const FAILURES_BY: [&str; 9] = ["cause", "class", "model", "provider", "account", "hour", "http", "code", "queue"];
/// What tokens are counted by.
pub const USAGE_BY: [&str; 7] = ["model", "tenant", "queue", "provider", "account", "day", "label.KEY"];

/// What a list of jobs takes.
pub const JOBS: [&str; 14] = [
    "state",
    "why",
    "queue",
    "tenant",
    "provider",
    "account",
    "model",
    "label.KEY",
    "schedule",
    "since",
    "until",
    "time",
    "limit",
    "cursor",
];
/// What results take. `since` and `until` are of the jobs' ends.
pub const RESULTS: [&str; 11] =
    ["state", "queue", "tenant", "provider", "account", "model", "label.KEY", "since", "until", "limit", "cursor"];
/// What a list of failures takes.
pub const FAILURES: [&str; 17] = [
    "cause",
    "class",
    "code",
    "http",
    "phase",
    "rule",
    "queue",
    "tenant",
    "provider",
    "account",
    "model",
    "label.KEY",
    "include_retried",
    "since",
    "until",
    "limit",
    "cursor",
];
/// What counts of failures take.
pub const FAILURE_COUNTS: [&str; 17] = [
    "by",
    "cause",
    "class",
    "code",
    "http",
    "phase",
    "rule",
    "queue",
    "tenant",
    "provider",
    "account",
    "model",
    "label.KEY",
    "include_retried",
    "since",
    "until",
    "limit",
];
/// What the reset audit takes.
pub const RESETS: [&str; 13] = [
    "source", "verdict", "word", "cause", "queue", "tenant", "provider", "account", "model", "since", "until", "limit",
    "cursor",
];
/// What the accuracy of sources takes.
pub const ACCURACY: [&str; 9] =
    ["source", "queue", "tenant", "provider", "account", "model", "since", "until", "limit"];
/// What a list of holds takes.
pub const HOLDS: [&str; 7] = ["include_ended", "provider", "account", "model", "since", "until", "limit"];
/// What usage takes.
pub const USAGE: [&str; 10] =
    ["by", "queue", "tenant", "provider", "account", "model", "label.KEY", "since", "until", "limit"];
/// Parameters of releases to come.
const NOT_YET: [&str; 5] = ["sort", "order", "format", "id", "follow"];
/// Every parameter that is taken somewhere: one that does not belong to the list at hand is told so.
const ELSEWHERE: [&str; 26] = [
    "state",
    "why",
    "cause",
    "class",
    "queue",
    "tenant",
    "provider",
    "account",
    "model",
    "label.KEY",
    "schedule",
    "source",
    "verdict",
    "word",
    "code",
    "http",
    "phase",
    "rule",
    "since",
    "until",
    "time",
    "by",
    "include_retried",
    "include_ended",
    "limit",
    "cursor",
];

/// Reads parameters into a query. `allowed` are the names that this list takes (`label.KEY` for any label); of these `by`
/// is no filter, and is asked for by [`said`].
///
/// # Errors
/// The first unknown name or value, with what is allowed.
pub fn query(pairs: &[(String, String)], allowed: &[&str], now_ms: i64) -> Result<Query, Problem> {
    let mut query = Query { limit: LIMIT, now_ms, ..Query::default() };
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in pairs {
        let folded = if name.starts_with("label.") { "label.KEY" } else { name.as_str() };
        if !allowed.contains(&folded) {
            let what = if NOT_YET.contains(&folded) {
                "is not supported by this release"
            } else if ELSEWHERE.contains(&folded) {
                "does not apply here"
            } else {
                "is unknown"
            };
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

/// That nothing is said where no parameter is taken.
///
/// # Errors
/// The first name that stands there.
pub fn none(pairs: &[(String, String)]) -> Result<(), Problem> {
    query(pairs, &[], 0).map(drop)
}

/// The value of a parameter, where it is said.
#[must_use]
pub fn said<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What failures are to be counted by.
///
/// # Errors
/// What is allowed.
pub fn failures_by(value: &str) -> Result<By, Problem> {
    Ok(match value {
        "cause" => By::Cause,
        "class" => By::Class,
        "model" => By::Model,
        "provider" => By::Provider,
        "account" => By::Account,
        "hour" => By::Hour,
        "http" => By::Http,
        "code" => By::Code,
        "queue" => By::Queue,
        _ => return Err(no_value("by", value, &FAILURES_BY)),
    })
}

/// What tokens are to be counted by.
///
/// # Errors
/// What is allowed.
pub fn usage_by(value: &str) -> Result<UsageBy, Problem> {
    Ok(match value {
        "model" => UsageBy::Model,
        "tenant" => UsageBy::Tenant,
        "queue" => UsageBy::Queue,
        "provider" => UsageBy::Provider,
        "account" => UsageBy::Account,
        "day" => UsageBy::Day,
        label => match label.strip_prefix("label.") {
            Some(key) if !key.is_empty() => UsageBy::Label(key.to_owned()),
            _ => return Err(no_value("by", value, &USAGE_BY)),
        },
    })
}

fn set(query: &mut Query, name: &str, value: &str, now_ms: i64) -> Result<(), Problem> {
    match name {
        "state" => query.states = any_of(name, value, &STATES)?,
        "why" => query.whys = any_of(name, value, &WHYS)?,
        "queue" => query.queues = names(value),
        "tenant" => query.tenants = names(value),
        "provider" => query.providers = names(value),
        "account" => query.accounts = names(value),
        "model" => query.models = names(value),
        "cause" => query.causes = any_of(name, value, &CAUSES)?,
        "class" => query.classes = any_of(name, value, &CLASSES)?,
        "code" => query.codes = names(value),
        "http" => query.http = statuses(value)?,
        "phase" => query.phases = any_of(name, value, &PHASES)?,
        "rule" => query.rules = names(value),
        "source" => query.sources = names(value),
        "verdict" => query.verdicts = any_of(name, value, &VERDICTS)?,
        "word" => query.words = any_of(name, value, &WORDS)?,
        "schedule" => query.schedule = Some(schedule(value)?),
        "include_retried" => query.include_retried = truth(name, value)?,
        "include_ended" => query.include_ended = truth(name, value)?,
        "since" => query.since_ms = Some(instant(name, value, now_ms)?),
        "until" => query.until_ms = Some(instant(name, value, now_ms)?),
        "time" => query.by_end = one_of(name, value, &TIMES)? == "ended",
        "limit" => query.limit = limit(value)?,
        "cursor" => query.cursor = Some(value.to_owned()),
        // Read by `failures_by` or `usage_by`.
        "by" => {}
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

fn schedule(value: &str) -> Result<ScheduleId, Problem> {
    value.parse().map_err(|_| {
        let what = format!("`{}` is no value of `schedule`; write a schedule's id", value.escape_debug());
        Problem::new(Kind::Parameter, what).at("schedule")
    })
}

fn statuses(value: &str) -> Result<Vec<u16>, Problem> {
    let status = |text: &str| text.trim().parse().ok().filter(|status| (100..=599).contains(status));
    value.split(',').map(status).collect::<Option<_>>().ok_or_else(|| {
        let what = format!("`{}` is no value of `http`; write statuses from 100 to 599", value.escape_debug());
        Problem::new(Kind::Parameter, what).at("http")
    })
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
            one_of(name, word, known).map(str::to_owned)
        })
        .collect()
}

/// One known word.
///
/// # Errors
/// That it is unknown, with those that are not.
pub fn one_of<'a>(name: &str, word: &'a str, known: &[&str]) -> Result<&'a str, Problem> {
    if known.contains(&word) { Ok(word) } else { Err(no_value(name, word, known)) }
}

fn no_value(name: &str, value: &str, known: &[&str]) -> Problem {
    wrong(name, &format!("`{}` is no value of `{name}`", value.escape_debug()), known)
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

/// Yes or no.
///
/// # Errors
/// What is allowed.
pub fn truth(name: &str, value: &str) -> Result<bool, Problem> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(no_value(name, value, &["1", "0"])),
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
            ("sort", "id"),
            ("source", "retry-after"),
            ("why", "boredom"),
            ("schedule", "nightly"),
            ("time", "later"),
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
        let query = |name: &str, value: &str| query(&[(name.to_owned(), value.to_owned())], &FAILURES, 0);
        assert_eq!(query("http", "429, 503").unwrap().http, [429, 503]);
        assert_eq!(query("http", "429,7").unwrap_err().at.as_deref(), Some("http"));
    }

    #[test]
    fn what_is_counted_by_is_known() {
        assert!(FAILURES_BY.iter().all(|word| failures_by(word).is_ok()) && failures_by("day").is_err());
        assert!(USAGE_BY.iter().all(|word| usage_by(word).is_ok()) && usage_by("label.").is_err());
        assert_eq!(usage_by("label.team").unwrap(), UsageBy::Label("team".to_owned()));
    }

    /// What belongs to another list is told apart from what nobody knows.
    #[test]
    fn every_list_takes_known_names() {
        let lists: [&[&str]; 8] = [&JOBS, &RESULTS, &FAILURES, &FAILURE_COUNTS, &RESETS, &ACCURACY, &HOLDS, &USAGE];
        for name in lists.iter().flat_map(|list| *list) {
            assert!(ELSEWHERE.contains(name) && !NOT_YET.contains(name), "{name}");
        }
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
