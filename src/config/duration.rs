//! Durations as people write them: digits with `ms`, `s`, `m`, `h` or `d`, concatenable, no bare numbers.

/// Units from the largest, in milliseconds. `ms` before `m` and `s`: the first that fits is taken.
const UNITS: [(&str, i64); 5] = [("ms", 1), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];

/// Milliseconds. The error says what is wrong, and not what would be right.
pub(super) fn parse_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{}` is no duration", text.escape_debug());
    let mut rest = text;
    let mut total_ms: i64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = rest.split_at(digits);
        let number: i64 = number.parse().map_err(|_| wrong())?;
        let (name, unit_ms) =
            UNITS.iter().find(|(name, _)| unit.starts_with(name)).copied().ok_or_else(|| match unit {
                "" => format!("`{}` has no unit", text.escape_debug()),
                _ => wrong(),
            })?;
        total_ms = number
            .checked_mul(unit_ms)
            .and_then(|part_ms| total_ms.checked_add(part_ms))
            .ok_or_else(|| format!("`{text}` is longer than any wait"))?;
        rest = &unit[name.len()..];
    }
    Ok(total_ms)
}

/// The same in its largest exact units: `1h30m`, `750ms`, `0s`.
pub(super) fn text(mut ms: i64) -> String {
    if ms <= 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, unit_ms) in [UNITS[1], UNITS[2], UNITS[3], UNITS[4], UNITS[0]] {
        if ms >= unit_ms {
            text.push_str(&format!("{}{name}", ms / unit_ms));
            ms %= unit_ms;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_digits_with_units() {
        for (written, ms) in [("750ms", 750), ("30s", 30_000), ("1h30m", 5_400_000), ("90d", 7_776_000_000), ("0s", 0)]
        {
            assert_eq!(parse_ms(written), Ok(ms), "{written}");
            assert_eq!(text(ms), written);
        }
        for wrong in
            ["", "30", "s", "1.5s", "-1s", "1h30", "1 h", "1w", "99999999999999999999s", "9223372036854775807d"]
        {
            assert!(parse_ms(wrong).is_err(), "{wrong}");
        }
    }
}
