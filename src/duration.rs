//! Durations as people write and read them: `1h30m` in, `18 h 52 min` out. All in milliseconds.
//!
//! Pure. What a duration is for, and which ones make sense there, is for whoever asked for it to say.

const MS: [(&str, i64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("is empty; write digits with ms, s, m, h or d, such as `1h30m`")]
    Empty,
    #[error("has a number without a unit; write digits with ms, s, m, h or d, such as `1h30m`")]
    Unitless,
    #[error("is no duration; write digits with ms, s, m, h or d, such as `1h30m`")]
    Grammar,
    #[error("is longer than can be counted in milliseconds")]
    TooLong,
}

/// Reads digits with `ms`, `s`, `m`, `h` or `d`, concatenated at will (`1h30m`, `750ms`); the parts add up. No bare
/// numbers, signs, fractions or blanks.
///
/// # Errors
/// What is wrong with the text, as the end of a sentence that names it.
pub fn parse_ms(text: &str) -> Result<i64, Malformed> {
    if text.is_empty() {
        return Err(Malformed::Empty);
    }
    let mut rest = text;
    let mut total_ms: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        if number.is_empty() {
            return Err(Malformed::Grammar);
        }
        if unit.is_empty() {
            return Err(if tail.is_empty() { Malformed::Unitless } else { Malformed::Grammar });
        }
        let Some((_, unit_ms)) = MS.iter().find(|(name, _)| *name == unit) else { return Err(Malformed::Grammar) };
        // Only an overlong run of digits can fail here: there is nothing else in `number`.
        let number: i64 = number.parse().map_err(|_| Malformed::TooLong)?;
        let part_ms = number.checked_mul(*unit_ms).ok_or(Malformed::TooLong)?;
        total_ms = total_ms.checked_add(part_ms).ok_or(Malformed::TooLong)?;
        rest = tail;
    }
    Ok(total_ms)
}

/// Writes a duration so that [`parse_ms`] reads it back: `1h30m`, `750ms`, `0s`. A negative one has a leading `-`, which
/// no setting takes.
#[must_use]
pub fn write(ms: i64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut out = if ms < 0 { "-".to_owned() } else { String::new() };
    let mut rest = ms.unsigned_abs();
    for (name, unit_ms) in MS.iter().rev() {
        let count = rest / unit_ms.unsigned_abs();
        if count > 0 {
            out.push_str(&count.to_string());
            out.push_str(name);
            rest -= count * unit_ms.unsigned_abs();
        }
    }
    out
}

/// For people: at most two units, cut rather than rounded (a countdown never says more than is left): `18 ms`, `1.2 s`,
/// `41 s`, `4 min 12 s`, `18 h 52 min`, `3 d 4 h`.
#[must_use]
pub fn format(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (s, min, h, d) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    let text = if ms < 1_000 {
        format!("{ms} ms")
    } else if s < 10 {
        format!("{s}.{} s", ms % 1_000 / 100)
    } else if min == 0 {
        format!("{s} s")
    } else if h == 0 {
        two(min, "min", s % 60, "s")
    } else if d == 0 {
        two(h, "h", min % 60, "min")
    } else {
        two(d, "d", h % 24, "h")
    };
    format!("{sign}{text}")
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small} {small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grammar_is_digits_with_units() {
        for (text, ms) in [
            ("1h30m", 5_400_000),
            ("750ms", 750),
            ("45d", 3_888_000_000),
            ("0s", 0),
            ("1m500ms", 60_500),
            ("007s", 7_000),
            ("30m1h", 5_400_000),
        ] {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
        for (text, why) in [
            ("", Malformed::Empty),
            ("30", Malformed::Unitless),
            ("1h30", Malformed::Unitless),
            ("h", Malformed::Grammar),
            ("-1s", Malformed::Grammar),
            ("1.5h", Malformed::Grammar),
            ("1 h", Malformed::Grammar),
            (" 1h", Malformed::Grammar),
            ("1h ", Malformed::Grammar),
            ("1S", Malformed::Grammar),
            ("1sec", Malformed::Grammar),
            ("1s\u{661}s", Malformed::Grammar),
            ("99999999999999999999s", Malformed::TooLong),
            ("9223372036854775807d", Malformed::TooLong),
            ("9223372036854775807ms1ms", Malformed::TooLong),
        ] {
            assert_eq!(parse_ms(text), Err(why), "{text}");
        }
    }

    #[test]
    fn people_read_two_units() {
        for (ms, text) in [
            (0, "0 ms"),
            (18, "18 ms"),
            (999, "999 ms"),
            (1_250, "1.2 s"),
            (7_000, "7.0 s"),
            (41_999, "41 s"),
            (60_000, "1 min"),
            (252_000, "4 min 12 s"),
            (67_920_000, "18 h 52 min"),
            (273_600_000, "3 d 4 h"),
            (-9_000, "-9.0 s"),
        ] {
            assert_eq!(format(ms), text);
        }
        assert!(format(i64::MIN).starts_with('-'));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0..i64::MAX) {
            prop_assert_eq!(parse_ms(&write(ms)), Ok(ms));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = parse_ms(&text);
        }
    }
}
