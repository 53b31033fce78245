//! Waits in a vendor's own sentence, read only where no structural candidate stands: a duration after words that ask
//! for a wait, a date after words that promise one. A number that names a window's length or its limit is no wait.
//!
//! Bounded work at every position of at most 4 KiB.

use super::date;
use super::grammar::{self, Value};
use super::{Found, Window};
use crate::failure::SourceKind;
use crate::failure::message::cap;
use jiff::tz::TimeZone;

/// How far back words are looked at, in bytes.
const LOOK_BACK: usize = 120;
/// How many waits one message may name.
const MAX_FOUND: usize = 6;
/// Words that ask for a wait or promise an end, anywhere before the figure in its sentence.
const TRIGGERS: [&str; 23] = [
    "retry",
    "again",
    "reset",
    "wait",
    "available",
    "refresh",
    "renew",
    "restor",
    "unlock",
    "lifted",
    "regain",
    "resume",
    "return",
    "replenish",
    "recover",
    "until",
    "重置",
    "重试",
    "再试",
    "恢复",
    "刷新",
    "等待",
    "尝试",
];
/// Words directly before a duration.
const BEFORE_DURATION: [&str; 11] = ["in", "after", "for", "wait", "least", "another", "在", "等待", "于", "请", "约"];
/// Words directly before a date or a clock time.
const BEFORE_DATE: [&str; 17] = [
    "at", "on", "until", "till", "after", "in", "resets", "reset", "by", "from", "is", "date", "time", "在", "将在",
    "于", "至",
];
/// Words that may stand between those and the figure.
const FILLERS: [&str; 6] = ["about", "approximately", "around", "roughly", "up", "to"];

pub(super) fn find(text: &str, at: &str, received_ms: i64, zone: &TimeZone) -> Vec<Found> {
    let text = cap(text);
    let lower = text.to_ascii_lowercase();
    let mut out: Vec<Found> = Vec::new();
    let mut position = 0;
    while position < lower.len() && out.len() < MAX_FOUND {
        let step = match figure(&lower, position, received_ms, zone) {
            Some((value, len)) => {
                let end = position + len;
                let raw = text.get(position..end).map(str::trim).filter(|raw| raw.chars().count() <= grammar::MAX_RAW);
                out.push(Found {
                    source: SourceKind::Body,
                    name: at.to_owned(),
                    raw: raw.map(str::to_owned),
                    value,
                    kind: None,
                    remaining: None,
                    window: Window::None,
                    order: u8::MAX,
                });
                len
            }
            None => lower.get(position..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
        };
        position += step.max(1);
    }
    out
}

/// A wait that begins exactly here.
fn figure(lower: &str, position: usize, received_ms: i64, zone: &TimeZone) -> Option<(Value, usize)> {
    let (before, rest) = lower.split_at_checked(position)?;
    let first = rest.chars().next()?;
    let previous = before.chars().next_back();
    if previous.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '$' | ':' | '/')) {
        return None;
    }
    if !(first.is_ascii_digit() || first.is_ascii_lowercase()) {
        return None;
    }
    // `Claude AI usage limit reached|1790000000`
    if previous == Some('|') {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole = matches!(digits, 10 | 13) && rest.get(digits..).is_some_and(|end| end.trim().is_empty());
        return whole
            .then(|| (grammar::number(rest.get(..digits).unwrap_or_default(), grammar::Unit::Seconds), digits));
    }
    let before = sentence_before(before);
    let asked = |after: &str| {
        TRIGGERS.iter().any(|word| before.contains(word))
            || ["重置", "后重", "后再", "后恢复", "后刷新", "恢复", "后尝试"]
                .iter()
                .any(|word| after.trim_start().starts_with(word))
    };
    let lead = lead(before);
    let wait = if first.is_ascii_digit() { duration(rest) } else { None };
    if let Some((ms, len)) = wait {
        let after = rest.get(len..).unwrap_or_default();
        let is_led =
            BEFORE_DURATION.iter().any(|word| is_last_word(lead, word)) || after.trim_start().starts_with('后');
        return (is_led && asked(after)).then_some((Value::Delta(ms), len));
    }
    if !BEFORE_DATE.iter().any(|word| is_last_word(lead, word)) {
        return None;
    }
    if first.is_ascii_digit() {
        let digits = rest.bytes().take(14).take_while(u8::is_ascii_digit).count();
        if matches!(digits, 10 | 13) && asked("") {
            return Some((grammar::number(rest.get(..digits)?, grammar::Unit::Seconds), digits));
        }
    }
    let window = floor(rest, 80);
    let read = date::read(window, received_ms, zone)?;
    let after = rest.get(read.len..).unwrap_or_default();
    asked(after).then_some((Value::At(i128::from(read.at_ms)), read.len))
}

/// The part of the sentence that stands before a figure.
fn sentence_before(before: &str) -> &str {
    let mut start = before.len().saturating_sub(LOOK_BACK);
    while !before.is_char_boundary(start) {
        start += 1;
    }
    let near = before.get(start..).unwrap_or_default();
    let from =
        [". ", "! ", "? ", "\n", "。", "；"].iter().filter_map(|end| near.rfind(end).map(|at| at + end.len())).max();
    near.get(from.unwrap_or(0)..).unwrap_or_default()
}

/// What leads to the figure, fillers taken off.
fn lead(before: &str) -> &str {
    let mut lead = before.trim_end_matches([' ', '~', '≈', ':', '`', '*', '"', '\'', '(']);
    for _ in 0..3 {
        let Some(next) = FILLERS.iter().find_map(|word| strip_last_word(lead, word)) else { break };
        lead = next.trim_end();
    }
    lead
}

fn strip_last_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_suffix(word).filter(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
}

fn is_last_word(text: &str, word: &str) -> bool {
    if word.is_ascii() { strip_last_word(text, word).is_some() } else { text.ends_with(word) }
}

/// A duration in figures and units or words: `1.2s`, `6m0s`, `20 seconds`, `4 days 20 hours 9 minutes`, `20 秒`.
fn duration(text: &str) -> Option<(i128, usize)> {
    let text = floor(text, 64);
    if let Some(found) = span(text) {
        return Some(found);
    }
    let mut at = 0;
    let mut total = 0;
    let mut end = 0;
    for _ in 0..6 {
        let rest = text.get(at..)?;
        let Some((ms, len)) = one(rest) else { break };
        total += ms;
        at += len;
        end = at;
        let next = text.get(at..).unwrap_or_default();
        let gap = [", and ", " and ", ", ", " "].iter().find(|gap| next.starts_with(**gap)).map_or(0, |gap| gap.len());
        at += gap;
    }
    (end > 0).then_some((total, end))
}

/// A span as .NET writes it: `02:25:50`, `2.12:25:50` (days, hours, minutes, seconds).
fn span(text: &str) -> Option<(i128, usize)> {
    let len = text.bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b':' | b'.')).count();
    let figure = text.get(..len)?.trim_end_matches(['.', ':']);
    let (days, clock) = figure.split_once('.').filter(|(_, rest)| rest.contains(':')).unwrap_or(("0", figure));
    let parts: Vec<i128> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let days: i128 = days.parse().ok().filter(|days| (0..1_000).contains(days))?;
    let fits = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    fits.then_some(((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000, figure.len()))
}

/// One figure with its unit.
fn one(text: &str) -> Option<(i128, usize)> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let figure = text.get(..digits).filter(|figure| figure.starts_with(|c: char| c.is_ascii_digit()))?;
    let rest = text.get(digits..)?;
    let gap = usize::from(rest.starts_with(' '));
    let word = rest.get(gap..)?;
    let letters = word.bytes().take_while(u8::is_ascii_lowercase).count();
    let (unit, unit_len) = if letters > 0 {
        (word.get(..letters)?, letters)
    } else {
        let unit = ["毫秒", "秒钟", "秒", "分钟", "分", "个小时", "小时", "天"]
            .iter()
            .find(|unit| word.starts_with(**unit))?;
        (*unit, unit.len())
    };
    let short = match unit {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "毫秒" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" | "秒" | "秒钟" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" | "分" | "分钟" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" | "小时" | "个小时" => "h",
        "d" | "day" | "days" | "天" => "d",
        _ => return None,
    };
    let ms = grammar::duration(&format!("{}{short}", figure.trim_end_matches('.')))?;
    Some((ms, digits + gap + unit_len))
}

/// At most `most` bytes, cut between characters.
fn floor(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-09-01T12:00:00Z
    const NOW_MS: i64 = 1_788_264_000_000;

    fn waits(text: &str) -> Vec<i128> {
        let found = find(text, "text", NOW_MS, &TimeZone::UTC);
        let wait = |found: Found| match found.value {
            Value::Delta(ms) => ms,
            Value::At(at) => at - i128::from(NOW_MS),
            Value::Sentinel | Value::Malformed => -1,
        };
        found.into_iter().map(wait).collect()
    }

    #[test]
    fn waits_in_sentences() {
        for (text, ms) in [
            ("Please try again in 1.2s. Visit us.", 1_200),
            ("Please try again in 6m0s.", 360_000),
            ("Please retry after 20 seconds.", 20_000),
            ("Please retry your requests after 12 seconds.", 12_000),
            ("Please wait 29 seconds before retrying.", 29_000),
            ("Please wait at least 2 minutes", 120_000),
            ("Your rate limit resets in ~8s.", 8_000),
            ("Resets in 9h22m20s.", 33_740_000),
            ("Your quota will reset after 161h39m41s.", 581_981_000),
            ("Try again in 4 days 20 hours 9 minutes.", 418_140_000),
            ("Please retry in 36.429760048s.", 36_430),
            ("You will regain access on 2026-09-02 at 00:00 UTC.", 43_200_000),
            ("You've hit your usage limit. Try again at 3:42 PM.", 13_320_000),
            ("You've hit your limit · resets 3pm (UTC)", 10_800_000),
            ("usage limit reached|1788264060", 60_000),
            ("请在 20 秒后重试", 20_000),
            ("Quota will be replenished in 2.12:25:50.", 217_550_000),
            ("Quota will be replenished in 05:21:12.", 19_272_000),
            ("您的限额将在 2026-09-01 12:01:00 重置。", 60_000),
        ] {
            assert_eq!(waits(text), [ms], "{text}");
        }
    }

    #[test]
    fn numbers_that_are_no_waits() {
        for text in [
            "Rate limit of 10 per 60s exceeded",
            "Usage limit reached for 5 hour",
            "Request timed out after 30 seconds",
            "You sent 20 requests in 60 seconds",
            "Limit 30000, Used 29700, Requested 1000",
            "your 5-hour limit resets soon",
            "Please retry with fewer than 10 requests per 10 seconds",
            "Please try again in a few minutes.",
            "The limit resets every 24 hours",
            "created at 2026-09-02 00:00:00",
            "",
            "İİİ try again in",
        ] {
            assert_eq!(waits(text), Vec::<i128>::new(), "{text}");
        }
    }
}
