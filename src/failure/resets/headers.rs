//! Resets in headers, and in the headers that a relay copied into a body: which names are known, which window each
//! belongs to, and what that window's own figures say.

use super::grammar::{self, Unit, Value};
use super::{Found, State, Window};
use crate::failure::{LimitKind, SourceKind};

/// How many candidates one response may have.
const MAX_CANDIDATES: usize = 64;

/// Where a header's values are read from, and under which name they are reported.
pub(super) struct Field<'a> {
    /// Lower case.
    pub name: String,
    pub value: &'a str,
    pub source: SourceKind,
    /// As reported: the lower-case name, or the pointer on the wire.
    pub at: String,
}

/// A candidate and what its own window says.
pub(super) type Sighting = (Found, State);

/// How a known name is read.
struct Spot {
    grammar: Grammar,
    kind: Option<LimitKind>,
    window: Window,
    order: u8,
    figures: Figures,
}

#[derive(Clone, Copy)]
enum Grammar {
    RetryAfter,
    Reset(Unit),
}

/// Which of the other headers tells whether the window is spent.
enum Figures {
    None,
    /// What is left of it.
    Remaining(String),
    /// A named window of a plan, by its status, else its utilisation; the part after `unified-`.
    Unified(String),
    /// All windows of the plan in one.
    UnifiedSum,
    /// The share that is used, in percent.
    UsedPercent(String),
}

const UNIFIED: &str = "anthropic-ratelimit-unified";
/// Usage that is paid for beyond a plan's windows: whether it is open is no window's end.
const OVERAGE: &str = "overage";

pub(super) fn find(fields: &[Field<'_>]) -> Vec<Sighting> {
    let mut out = Vec::new();
    for field in fields {
        let Some(spot) = spot(&field.name) else { continue };
        if out.len() >= MAX_CANDIDATES {
            break;
        }
        let value = match spot.grammar {
            Grammar::RetryAfter => grammar::retry_after(field.value),
            Grammar::Reset(unit) => grammar::reset(field.value, unit),
        };
        let (state, remaining) = state(&spot, fields);
        // Copied headers have the place of all body members after those that have names of their own.
        let order = if field.source == SourceKind::Body { spot.order.saturating_add(32) } else { spot.order };
        let found = Found {
            source: field.source,
            name: field.at.clone(),
            raw: grammar::raw(field.value),
            value,
            kind: spot.kind,
            remaining,
            window: spot.window,
            order,
        };
        out.push((found, state));
    }
    out
}

/// The integral seconds of a value's grammar are not repeated here: see [`grammar`].
fn spot(name: &str) -> Option<Spot> {
    let spot = |grammar, kind, window, order, figures| Some(Spot { grammar, kind, window, order, figures });
    match name {
        "retry-after" => return spot(Grammar::RetryAfter, None, Window::None, 9, Figures::None),
        "retry-after-ms" => return spot(Grammar::Reset(Unit::Millis), None, Window::None, 8, Figures::None),
        _ => {}
    }
    if let Some(rest) = name.strip_prefix("x-ratelimit-reset").or_else(|| name.strip_prefix("ratelimit-reset")) {
        let (kind, span) = named_window(rest)?;
        let remaining = Figures::Remaining(name.replacen("-reset", "-remaining", 1).replacen(
            "ratelimit-reset",
            "ratelimit-remaining",
            1,
        ));
        let window = match (kind, span) {
            (_, Some("minute" | "hour")) | (Some(_), None) => Window::Rate,
            _ => Window::Other,
        };
        return spot(Grammar::Reset(Unit::Seconds), kind, window, if kind.is_some() { 0 } else { 2 }, remaining);
    }
    if let Some(window) = name.strip_prefix(UNIFIED).and_then(|rest| rest.strip_suffix("-reset")) {
        let (figures, order) = match window.strip_prefix('-') {
            Some(window) if !window.is_empty() => (Figures::Unified(window.to_owned()), 1),
            None if window.is_empty() => (Figures::UnifiedSum, 2),
            Some(_) | None => return None,
        };
        return spot(Grammar::Reset(Unit::Seconds), None, Window::Other, order, figures);
    }
    if let Some(window) = name.strip_prefix("anthropic-ratelimit-").and_then(|rest| rest.strip_suffix("-reset")) {
        let kind = match window {
            "requests" => LimitKind::Requests,
            "tokens" | "input-tokens" | "output-tokens" => LimitKind::Tokens,
            _ => return None,
        };
        let remaining = Figures::Remaining(format!("anthropic-ratelimit-{window}-remaining"));
        return spot(Grammar::Reset(Unit::Seconds), Some(kind), Window::Rate, 0, remaining);
    }
    let codex = name.strip_prefix("x-codex-")?;
    let (window, form) = codex.split_once("-reset-")?;
    if !matches!(window, "primary" | "secondary") || !matches!(form, "at" | "after-seconds") {
        return None;
    }
    let order = if form == "at" { 1 } else { 2 };
    let used = Figures::UsedPercent(format!("x-codex-{window}-used-percent"));
    spot(Grammar::Reset(Unit::Seconds), None, Window::Other, order, used)
}

/// The kind and the span in what follows `…ratelimit-reset`; `None`: no name that is known.
fn named_window(rest: &str) -> Option<(Option<LimitKind>, Option<&str>)> {
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty().then_some((None, None));
    };
    let rest = rest.strip_prefix("project-").unwrap_or(rest);
    let (what, span) = match rest.rsplit_once('-') {
        Some((what, span)) => (what, Some(span)),
        None if matches!(rest, "minute" | "hour" | "day" | "month") => return Some((None, Some(rest))),
        None => (rest, None),
    };
    if span.is_some_and(|span| !matches!(span, "minute" | "hour" | "day" | "month")) {
        return None;
    }
    match what {
        "requests" => Some((Some(LimitKind::Requests), span)),
        "tokens" => Some((Some(LimitKind::Tokens), span)),
        _ => None,
    }
}

fn state(spot: &Spot, fields: &[Field<'_>]) -> (State, Option<String>) {
    // Of a repeated figure the smallest counts, so that the order of headers changes nothing.
    let figure = |name: &str| {
        let values = fields.iter().filter(|field| field.name == name).filter_map(|field| finite(field.value));
        values.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let below = |figure: Option<(f64, String)>, full: f64| match figure {
        Some((share, _)) if share < full => State::NotExhausted,
        _ => State::Exhausted,
    };
    match &spot.figures {
        Figures::None => (State::Exhausted, None),
        Figures::Remaining(name) => match figure(name) {
            Some((left, text)) if left > 0.0 => (State::NotExhausted, Some(text)),
            Some((_, text)) => (State::Exhausted, Some(text)),
            None => (State::Exhausted, None),
        },
        Figures::Unified(window) => {
            let refused = |window: &str| is_rejected(fields, &format!("{UNIFIED}-{window}-status"));
            let state = match refused(window) {
                Some(true) if window == OVERAGE && any_rejected(fields, OVERAGE) => State::Beside,
                Some(true) => State::Exhausted,
                Some(false) => State::NotExhausted,
                None => below(figure(&format!("{UNIFIED}-{window}-utilization")), 1.0),
            };
            (state, None)
        }
        Figures::UnifiedSum => {
            let state = match is_rejected(fields, &format!("{UNIFIED}-status")) {
                Some(false) => State::NotExhausted,
                _ if any_rejected(fields, OVERAGE) => State::Summed,
                _ => State::Exhausted,
            };
            (state, None)
        }
        Figures::UsedPercent(name) => (below(figure(name), 100.0), None),
    }
}

/// Whether a window's status says `rejected`; `None`: it has no status.
fn is_rejected(fields: &[Field<'_>], name: &str) -> Option<bool> {
    let mut values = fields.iter().filter(|field| field.name == name).peekable();
    values.peek()?;
    Some(values.any(|field| field.value.trim().eq_ignore_ascii_case("rejected")))
}

/// Whether a named window other than `but` is rejected.
fn any_rejected(fields: &[Field<'_>], but: &str) -> bool {
    fields.iter().any(|field| {
        let window = field.name.strip_prefix(UNIFIED).and_then(|rest| rest.strip_suffix("-status"));
        let named =
            window.and_then(|window| window.strip_prefix('-')).filter(|window| !window.is_empty() && *window != but);
        named.is_some() && field.value.trim().eq_ignore_ascii_case("rejected")
    })
}

/// A figure that is a plain number, and its text as kept.
fn finite(text: &str) -> Option<(f64, String)> {
    let raw = grammar::raw(text)?;
    let number: f64 = raw.parse().ok()?;
    number.is_finite().then_some((number, raw))
}

/// Whether a value is one that can be waited for at all.
pub(super) fn is_instant(value: Value) -> bool {
    matches!(value, Value::Delta(_) | Value::At(_))
}
