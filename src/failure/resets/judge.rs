//! Verdicts: which candidates stand, which one is waited for, and one phrase on each.

use super::grammar::Value;
use super::headers::{self, Field, Sighting};
use super::{Found, State, Window, prose, structure};
use crate::failure::body::Body;
use crate::failure::{Candidate, LimitKind, SourceKind, Verdict};
use jiff::tz::TimeZone;

/// A reset further ahead is no reset, in milliseconds: 400 days.
const PLAUSIBLE_MS: i128 = 400 * 86_400_000;
/// Our clock counts as ahead only beyond this, the send's own duration added, in milliseconds.
const SKEW_FROM_MS: i64 = 1_000;
/// A larger gap is no skew, in milliseconds.
const SKEW_TO_MS: i64 = 24 * 3_600_000;

/// What must be known to judge.
pub(in crate::failure) struct Question<'a> {
    pub headers: &'a [(String, String)],
    pub body: &'a Body<'a>,
    pub received_ms: i64,
    pub send_took_ms: i64,
    /// The kind that the body or its rule names.
    pub kind: Option<LimitKind>,
    /// The refusal is a spent allowance: its end is no bucket's refill.
    pub quota: bool,
    /// Whether any clock ends this failure at all; a purse and a terminal class know none.
    pub waits: bool,
    /// In which zone a date without one is read.
    pub zone: Option<&'a TimeZone>,
}

/// The evidence, and what was selected of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::failure) struct Judged {
    pub evidence: Vec<Candidate>,
    /// As named.
    pub reset_at_ms: Option<i64>,
    /// On our clock.
    pub resume_at_ms: Option<i64>,
    pub skew_ms: i64,
    pub source: Option<(SourceKind, String)>,
    /// The kind in the selected window's own name.
    pub kind: Option<LimitKind>,
}

/// A candidate with its instants and, but for the selection, its verdict.
struct Weighed {
    found: Found,
    at_ms: Option<i64>,
    resume_ms: Option<i64>,
    fallen: Option<(Verdict, String)>,
}

/// Finds every candidate and selects the one that is waited for.
pub(in crate::failure) fn judge(question: &Question<'_>) -> Judged {
    let skew_ms = skew_ms(question);
    let copied = structure::copied_headers(question.body);
    let own: Vec<Field<'_>> = question
        .headers
        .iter()
        .map(|(name, value)| Field { name: name.clone(), value, source: SourceKind::Header, at: name.clone() })
        .collect();
    let mut sightings: Vec<Sighting> = headers::find(&own);
    sightings.extend(structure::find(question.body).into_iter().map(|found| (found, State::Exhausted)));
    sightings.extend(headers::find(&structure::fields(&copied)));
    let mut weighed: Vec<Weighed> = sightings.into_iter().map(|sighting| weigh(sighting, question, skew_ms)).collect();
    if !weighed.iter().any(|one| one.fallen.is_none()) {
        // The error's own message; an outer one only where it says nothing.
        let spoken = question.body.messages.iter().find_map(|message| {
            let zone = question.zone.cloned().unwrap_or(TimeZone::UTC);
            let found = prose::find(&message.text, &message.at, question.received_ms, &zone);
            (!found.is_empty()).then_some(found)
        });
        weighed.extend(spoken.into_iter().flatten().map(|found| weigh((found, State::Exhausted), question, skew_ms)));
    }
    select(weighed, skew_ms)
}

fn weigh((found, state): Sighting, question: &Question<'_>, skew_ms: i64) -> Weighed {
    let received = i128::from(question.received_ms);
    let at = match found.value {
        Value::Delta(ms) => Some(received + ms),
        Value::At(at) => Some(at),
        Value::Sentinel | Value::Malformed => None,
    };
    let shift = if matches!(found.value, Value::At(_)) { i128::from(skew_ms) } else { 0 };
    let ahead = at.map(|at| at + shift - received);
    let fallen = fall(&found, state, question, ahead);
    let narrow = |ms: i128| i64::try_from(ms).ok();
    Weighed { at_ms: at.and_then(narrow), resume_ms: at.and_then(|at| narrow(at + shift)), found, fallen }
}

fn fall(found: &Found, state: State, question: &Question<'_>, ahead: Option<i128>) -> Option<(Verdict, String)> {
    let fell = |verdict, why: String| Some((verdict, why));
    if found.value == Value::Sentinel {
        return fell(Verdict::Past, "a vendor's word for none".into());
    }
    let Some(ahead) = ahead.filter(|_| headers::is_instant(found.value)) else {
        return fell(Verdict::Malformed, "no number, duration or date".into());
    };
    if ahead <= 0 {
        let why = if ahead == 0 { "over at receipt".into() } else { format!("over {} before receipt", span(-ahead)) };
        return fell(Verdict::Past, why);
    }
    if ahead > PLAUSIBLE_MS {
        return fell(Verdict::Implausible, "more than 400 days ahead".into());
    }
    match state {
        State::NotExhausted => {
            let why = match &found.remaining {
                Some(left) => format!("{left} left: it did not refuse us"),
                None => "not spent: it did not refuse us".into(),
            };
            return fell(Verdict::NotExhausted, why);
        }
        State::Beside => return fell(Verdict::OtherKind, "extra usage, not the window that refused".into()),
        State::Summed => return fell(Verdict::NotExhausted, "sums up windows of which one is named".into()),
        State::Exhausted => {}
    }
    if !question.waits {
        return fell(Verdict::OtherKind, "no clock ends this failure".into());
    }
    if question.quota && found.window == Window::Rate {
        return fell(Verdict::OtherKind, "a rate's refill, not the allowance's end".into());
    }
    match (found.kind, question.kind) {
        (Some(counted), Some(named)) if counted != named => {
            fell(Verdict::OtherKind, format!("counts {}; the body said {}", counted.as_str(), named.as_str()))
        }
        _ => None,
    }
}

fn select(mut weighed: Vec<Weighed>, skew_ms: i64) -> Judged {
    // A stable order, whatever the order of the headers was.
    weighed.sort_by(|a, b| {
        let key = |one: &Weighed| (one.found.source, one.found.name.clone(), one.at_ms, one.found.raw.clone());
        key(a).cmp(&key(b))
    });
    let best = weighed
        .iter()
        .enumerate()
        .filter(|(_, one)| one.fallen.is_none())
        .filter_map(|(index, one)| one.resume_ms.map(|resume_ms| (index, resume_ms, one)))
        .max_by_key(|(index, resume_ms, one)| {
            let header = one.found.source == SourceKind::Header;
            (*resume_ms, header, std::cmp::Reverse(one.found.order), std::cmp::Reverse(*index))
        })
        .map(|(index, resume_ms, _)| (index, resume_ms));
    let mut out = Judged::default();
    for (index, one) in weighed.into_iter().enumerate() {
        let (verdict, why) = match (one.fallen, best) {
            (Some(fallen), _) => fallen,
            (None, Some((selected, resume_ms))) if selected == index => {
                let absolute = matches!(one.found.value, Value::At(_));
                out.reset_at_ms = one.at_ms;
                out.resume_at_ms = Some(resume_ms);
                out.skew_ms = if absolute { skew_ms } else { 0 };
                out.source = Some((one.found.source, one.found.name.clone()));
                out.kind = one.found.kind;
                (Verdict::Selected, "the latest that stands".into())
            }
            (None, best) => {
                let before = best.and_then(|(_, resume_ms)| one.resume_ms.map(|own| i128::from(resume_ms - own)));
                let why = match before {
                    Some(ms) if ms > 0 => format!("stands, but ends {} before", span(ms)),
                    _ => "stands, at the same instant".into(),
                };
                (Verdict::Earlier, why)
            }
        };
        out.evidence.push(Candidate {
            source: one.found.source,
            name: one.found.name,
            raw: one.found.raw,
            at_ms: one.at_ms,
            kind: one.found.kind,
            remaining: one.found.remaining,
            verdict,
            why,
        });
    }
    out
}

/// How far our clock is ahead of the provider's, by its `Date`; 0 where it cannot be told.
fn skew_ms(question: &Question<'_>) -> i64 {
    if question.headers.iter().any(|(name, _)| name == "age") {
        return 0;
    }
    // Of several dates the latest gives the smallest skew.
    let dates = question.headers.iter().filter(|(name, _)| name == "date");
    let Some(date_ms) = dates.filter_map(|(_, value)| super::grammar::http_date(value)).max() else { return 0 };
    let Ok(gap_ms) = i64::try_from(i128::from(question.received_ms) - date_ms) else { return 0 };
    let from_ms = SKEW_FROM_MS.saturating_add(question.send_took_ms.max(0));
    if gap_ms > from_ms && gap_ms <= SKEW_TO_MS { gap_ms } else { 0 }
}

/// A duration in at most two units.
fn span(ms: i128) -> String {
    let (s, m, h, d) = (1_000, 60_000, 3_600_000, 86_400_000);
    let two = |big: i128, big_name: &str, small: i128, small_name: &str| {
        let rest = ms % big / small;
        if rest == 0 {
            format!("{} {big_name}", ms / big)
        } else {
            format!("{} {big_name} {rest} {small_name}", ms / big)
        }
    };
    if ms < s {
        format!("{ms} ms")
    } else if ms < 10 * s && ms % s != 0 {
        format!("{}.{} s", ms / s, ms % s / 100)
    } else if ms < m {
        format!("{} s", ms / s)
    } else if ms < h {
        two(m, "min", s, "s")
    } else if ms < d {
        two(h, "h", m, "min")
    } else {
        two(d, "d", h, "h")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_two_units() {
        for (ms, text) in [
            (40, "40 ms"),
            (1_200, "1.2 s"),
            (12_000, "12 s"),
            (252_000, "4 min 12 s"),
            (67_920_000, "18 h 52 min"),
            (86_400_000, "1 d"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
