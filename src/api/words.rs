//! How instants, ids and scopes are written for people, on every face alike.

use crate::store::{JobId, ScopeKey};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashMap;

/// An instant beside `now_ms`: today `14:03:05Z`, else `Tue 1 Dec 09:00Z`, of another year with the year.
#[must_use]
pub fn instant(at_ms: i64, now_ms: i64) -> String {
    let zoned = |ms: i64| Timestamp::from_millisecond(ms).map(|at| at.to_zoned_datetime(TimeZone::UTC));
    let (Ok(at), Ok(now)) = (zoned(at_ms), zoned(now_ms)) else {
        return "unknown".to_owned();
    };
    let form = if at.date() == now.date() {
        "%H:%M:%SZ"
    } else if at.year() == now.year() {
        "%a %-d %b %H:%MZ"
    } else {
        "%a %-d %b %Y %H:%MZ"
    };
    at.strftime(form).to_string()
}

/// The whole instant: `2026-12-01T09:00:00.000Z`.
#[must_use]
pub fn exact(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "unknown".to_owned(), |at| format!("{at:.3}"))
}

/// An instant and how far it is: `14:07:17Z (in 4 min 12 s)`, `14:03:05Z (18 s ago)`, `14:03:05Z (now)`.
#[must_use]
pub fn instant_and_distance(at_ms: i64, now_ms: i64) -> String {
    let distance_ms = at_ms.saturating_sub(now_ms);
    let distance = crate::duration::format(distance_ms.saturating_abs());
    let at = instant(at_ms, now_ms);
    match distance_ms {
        0 => format!("{at} (now)"),
        1.. => format!("{at} (in {distance})"),
        _ => format!("{at} ({distance} ago)"),
    }
}

/// A job's id in short, as one alone may be shown: `0199c2f4…9c2e`.
#[must_use]
pub fn short_id(id: JobId) -> String {
    shortened(&id.to_string(), 4)
}

/// The first 8 digits change only every 65 s, so the end must show; as much of it as tells these ids apart.
#[must_use]
pub fn short_ids(ids: &[JobId]) -> Vec<String> {
    let whole: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let longest = whole.iter().map(|id| id.len().saturating_sub(8)).max().unwrap_or(4);
    for tail in [4, 6, 8, 12] {
        let short: Vec<String> = whole.iter().map(|id| shortened(id, tail)).collect();
        let mut owners: HashMap<&str, &str> = HashMap::new();
        if short.iter().zip(&whole).all(|(short, whole)| *owners.entry(short).or_insert(whole) == whole) {
            return short;
        }
    }
    whole.iter().map(|id| shortened(id, longest)).collect()
}

fn shortened(id: &str, tail: usize) -> String {
    match (id.get(..8), id.len().checked_sub(tail).and_then(|at| id.get(at..))) {
        (Some(head), Some(end)) if id.len() > 8 + tail => format!("{head}…{end}"),
        _ => id.to_owned(),
    }
}

/// A scope: `provider/account/model`, without a model `provider/account`.
#[must_use]
pub fn scope(scope: &ScopeKey) -> String {
    if scope.model.is_empty() {
        format!("{}/{}", scope.provider, scope.account)
    } else {
        format!("{}/{}/{}", scope.provider, scope.account, scope.model)
    }
}

/// A count: `12,408`.
#[must_use]
pub fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_796_047_385_000;

    #[test]
    fn instants_say_no_more_than_they_must() {
        assert_eq!(exact(NOW_MS), "2026-11-30T14:03:05.000Z");
        assert_eq!(instant(NOW_MS, NOW_MS), "14:03:05Z");
        assert_eq!(instant(NOW_MS + 68_215_000, NOW_MS), "Tue 1 Dec 09:00Z");
        assert_eq!(instant(NOW_MS + 40 * 86_400_000, NOW_MS), "Sat 9 Jan 2027 14:03Z");
        assert_eq!(instant(i64::MAX, NOW_MS), "unknown");
        assert_eq!(instant_and_distance(NOW_MS + 252_000, NOW_MS), "14:07:17Z (in 4 min 12 s)");
        assert_eq!(instant_and_distance(NOW_MS - 18_000, NOW_MS), "14:02:47Z (18 s ago)");
        assert_eq!(instant_and_distance(NOW_MS, NOW_MS), "14:03:05Z (now)");
    }

    #[test]
    fn short_ids_stay_apart() {
        let ids: Vec<JobId> = ["0199c2f4-0000-7000-8000-00000000abcd", "0199c2f4-0000-7000-8000-00001111abcd"]
            .iter()
            .map(|id| id.parse().unwrap())
            .collect();
        assert_eq!(short_id(ids[0]), "0199c2f4…abcd");
        assert_eq!(short_ids(&ids[..1]), ["0199c2f4…abcd"]);
        assert_eq!(short_ids(&ids), ["0199c2f4…00abcd", "0199c2f4…11abcd"]);
        assert_eq!(short_ids(&[ids[0], ids[0]]), ["0199c2f4…abcd", "0199c2f4…abcd"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 12_408, -1_234_567].map(count), ["0", "999", "1,000", "12,408", "-1,234,567"]);
    }
}
