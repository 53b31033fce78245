//! The grammars of one value: numbers told apart by magnitude, compound durations, RFC 3339 and HTTP dates.
//!
//! All arithmetic is on integers of milliseconds; fractions round up, since waiting a millisecond longer costs nothing
//! and a millisecond less is a refusal.

/// The longest value that is read or kept, in bytes.
pub(super) const MAX_RAW: usize = 64;
const MS_PER_S: i128 = 1_000;
/// No real wait is 31 years long, so a larger number of seconds is an instant.
const EPOCH_S_FROM: i128 = 1_000_000_000;
const EPOCH_MS_FROM: i128 = 1_000_000_000_000;

/// What a name says of a number's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds, or none stated.
    Seconds,
    /// `retry*ms`.
    Millis,
    /// `*_at_ms`.
    AtMillis,
}

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// From receipt, in milliseconds.
    Delta(i128),
    /// Unix milliseconds on the clock of whoever said it.
    At(i128),
    /// `-1`: a vendor's word for "none".
    Sentinel,
    Malformed,
}

/// A number, by the magnitude table of its unit.
pub(super) fn number(text: &str, unit: Unit) -> Value {
    let text = text.trim();
    if text == "-1" {
        return Value::Sentinel;
    }
    let Some((whole, per_mille)) = decimal(text) else { return Value::Malformed };
    let ms = whole * MS_PER_S + per_mille;
    // In whole units, a fraction rounded up.
    let round = whole + i128::from(per_mille > 0);
    match unit {
        Unit::Seconds if whole < EPOCH_S_FROM => Value::Delta(ms),
        Unit::Seconds if whole < EPOCH_MS_FROM => Value::At(ms),
        Unit::Millis if whole < EPOCH_MS_FROM => Value::Delta(round),
        Unit::AtMillis if whole < EPOCH_MS_FROM => Value::Malformed,
        Unit::Seconds | Unit::Millis | Unit::AtMillis => Value::At(round),
    }
}

/// A compound duration: `1d2h`, `6m0s`, `1.2s`, `120ms`.
pub(super) fn duration(text: &str) -> Option<i128> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_RAW {
        return None;
    }
    let mut rest = text;
    let mut total_us: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (figure, after) = rest.split_at_checked(end)?;
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit_end)?;
        let (numerator_us, denominator): (i128, i128) = match unit {
            "d" => (86_400_000_000, 1),
            "h" => (3_600_000_000, 1),
            "m" => (60_000_000, 1),
            "s" => (1_000_000, 1),
            "ms" => (1_000, 1),
            "us" | "µs" | "μs" => (1, 1),
            "ns" => (1, 1_000),
            _ => return None,
        };
        let (whole, nanos) = decimal_nanos(figure)?;
        // Far beyond any plausible wait, and far from what the product below can hold.
        let whole = whole.min(1_000_000_000_000);
        let scaled = whole * numerator_us * 1_000_000_000 + nanos * numerator_us;
        total_us += ceil_div(scaled, 1_000_000_000 * denominator);
        rest = next;
    }
    Some(ceil_div(total_us, 1_000))
}

/// RFC 3339, in Unix milliseconds, rounded up.
pub(super) fn rfc3339(text: &str) -> Option<i128> {
    let text = text.trim();
    // A date at least: jiff reads more than RFC 3339, a bare number not among it.
    if text.len() > MAX_RAW || !text.as_bytes().get(..5).is_some_and(|start| start.ends_with(b"-")) {
        return None;
    }
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(ceil_div(at.as_nanosecond(), 1_000_000))
}

/// An HTTP date in any of its three forms, in Unix milliseconds.
pub(super) fn http_date(text: &str) -> Option<i128> {
    let text = text.trim();
    if text.len() > MAX_RAW || !text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let at = httpdate::parse_http_date(text).ok()?;
    match at.duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_millis()).ok(),
        Err(before) => i128::try_from(before.duration().as_millis()).ok().map(|ms| -ms),
    }
}

/// A value in the grammar of `retry-after`: a number or an HTTP date.
pub(super) fn retry_after(text: &str) -> Value {
    match http_date(text) {
        Some(at) => Value::At(at),
        None => number(text, Unit::Seconds),
    }
}

/// A value in the grammar of the reset headers: a number, a duration or RFC 3339.
pub(super) fn reset(text: &str, unit: Unit) -> Value {
    match number(text, unit) {
        Value::Malformed => {
            duration(text).map(Value::Delta).or_else(|| rfc3339(text).map(Value::At)).unwrap_or(Value::Malformed)
        }
        read => read,
    }
}

/// A body member's string: whatever a header may say.
pub(super) fn any(text: &str, unit: Unit) -> Value {
    match reset(text, unit) {
        Value::Malformed => http_date(text).map_or(Value::Malformed, Value::At),
        read => read,
    }
}

/// The value as received, where it fits the grammar of a number, a duration or a date; nothing else is ever kept.
pub(super) fn raw(text: &str) -> Option<String> {
    let text = text.trim();
    let numeric = || {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        !digits.is_empty()
            && digits.bytes().any(|b| b.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let fits = text.len() <= MAX_RAW
        && !text.is_empty()
        && (numeric()
            || decimal(text).is_some()
            || duration(text).is_some()
            || rfc3339(text).is_some()
            || http_date(text).is_some());
    fits.then(|| text.to_owned())
}

/// A non-negative decimal as a whole part and thousandths, these rounded up. Up to [`MAX_RAW`] bytes.
fn decimal(text: &str) -> Option<(i128, i128)> {
    if let Some((whole, nanos)) = decimal_nanos(text) {
        return Some((whole, ceil_div(nanos, 1_000_000)));
    }
    // A JSON number may have an exponent.
    if text.len() > MAX_RAW || !text.contains(['e', 'E']) || !text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    // Beyond this everything is implausible anyway.
    let whole = format!("{:.0}", value.min(1e20).ceil()).parse().ok()?;
    Some((whole, 0))
}

/// A plain decimal as a whole part and nanos, the rest rounded up.
fn decimal_nanos(text: &str) -> Option<(i128, i128)> {
    if text.len() > MAX_RAW {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || (text.contains('.') && fraction.is_empty()) {
        return None;
    }
    // More than 20 digits saturate: still a number, never a plausible one.
    let whole: i128 = if whole.trim_start_matches('0').len() > 20 { 10_i128.pow(20) } else { whole.parse().ok()? };
    let mut nanos: i128 = 0;
    for index in 0..9 {
        let digit = fraction.as_bytes().get(index).map_or(0, |byte| i128::from(byte - b'0'));
        nanos = nanos * 10 + digit;
    }
    if fraction.bytes().skip(9).any(|byte| byte != b'0') {
        nanos += 1;
    }
    Some((whole, nanos))
}

fn ceil_div(value: i128, by: i128) -> i128 {
    let quotient = value.div_euclid(by);
    if value.rem_euclid(by) == 0 { quotient } else { quotient + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitude_tells_numbers_apart() {
        use Unit::{AtMillis, Millis, Seconds};
        use Value::{At, Delta, Malformed, Sentinel};
        for (text, unit, value) in [
            ("7", Seconds, Delta(7_000)),
            ("0.5", Seconds, Delta(500)),
            ("0.0001", Seconds, Delta(1)),
            ("999999999", Seconds, Delta(999_999_999_000)),
            ("1000000000", Seconds, At(1_000_000_000_000)),
            ("1788264020.25", Seconds, At(1_788_264_020_250)),
            ("999999999999", Seconds, At(999_999_999_999_000)),
            ("1000000000000", Seconds, At(1_000_000_000_000)),
            ("1400", Millis, Delta(1_400)),
            ("1400.2", Millis, Delta(1_401)),
            ("1000000000", Millis, Delta(1_000_000_000)),
            ("1788264090000", Millis, At(1_788_264_090_000)),
            ("1788264090", AtMillis, Malformed),
            ("1788264090000", AtMillis, At(1_788_264_090_000)),
            ("-1", Seconds, Sentinel),
            ("-2", Seconds, Malformed),
            ("", Seconds, Malformed),
            ("7s", Seconds, Malformed),
            ("1.", Seconds, Malformed),
            (".5", Seconds, Malformed),
            ("NaN", Seconds, Malformed),
            ("inf", Seconds, Malformed),
            ("2e1", Seconds, Delta(20_000)),
        ] {
            assert_eq!(number(text, unit), value, "{text} {unit:?}");
        }
        assert!(matches!(number("99999999999999999999", Seconds), At(_)));
        assert_eq!(number(&"9".repeat(1_000_000), Seconds), Malformed);
    }

    #[test]
    fn compound_durations() {
        for (text, ms) in [
            ("1d2h", Some(93_600_000)),
            ("6m0s", Some(360_000)),
            ("1.2s", Some(1_200)),
            ("120ms", Some(120)),
            ("2m59.56s", Some(179_560)),
            ("581981.300432511s", Some(581_981_301)),
            ("161h39m41.300432511s", Some(581_981_301)),
            ("500µs", Some(1)),
            ("38", None),
            ("s", None),
            ("5 s", None),
            ("5x", None),
            ("99999999999999999999d", Some(86_400_000_000_000_000_000)),
        ] {
            assert_eq!(duration(text), ms, "{text}");
        }
    }

    #[test]
    fn dates() {
        assert_eq!(rfc3339("2026-09-01T12:05:00+00:00"), Some(1_788_264_300_000));
        assert_eq!(rfc3339("2026-09-01T12:05:00.0001Z"), Some(1_788_264_300_001));
        assert_eq!(rfc3339("1788264300"), None);
        assert_eq!(http_date("Tue, 01 Sep 2026 12:00:45 GMT"), Some(1_788_264_045_000));
        assert_eq!(http_date("Tuesday, 01-Sep-26 12:00:45 GMT"), Some(1_788_264_045_000));
        assert_eq!(http_date("soon"), None);
        assert_eq!(raw("soon"), None);
        assert_eq!(raw(" -5 "), Some("-5".into()));
        assert_eq!(raw("99999999999999999999").as_deref(), Some("99999999999999999999"));
    }
}
