//! Values of a scenario file: durations, names with a star, statuses, shares. What is wrong with one is said of its line.

use super::Pattern;
use crate::duration;
use serde::{Deserialize, Deserializer, de};

/// Past a year, a duration is a slip of the pen.
const MAX_DURATION_MS: i64 = 366 * 86_400_000;

pub(super) struct Glob(pub Pattern);

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.matches('*').count() > 1 {
            return Err(de::Error::custom(format!("`{text}` has more than one `*`")));
        }
        Ok(Self(Pattern::new(&text)))
    }
}

/// A status that can stand in an answer's head.
#[derive(Clone, Copy)]
pub(super) struct Status(pub u16);

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let status = u16::deserialize(deserializer)?;
        if (200..=599).contains(&status) {
            Ok(Self(status))
        } else {
            Err(de::Error::custom(format!("{status} is no status in 200..=599")))
        }
    }
}

/// A probability.
#[derive(Clone, Copy)]
pub(super) struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(de::Error::custom(format!("{share} is no probability in 0..=1")))
        }
    }
}

/// A duration in milliseconds: digits with `ms`, `s`, `m`, `h` or `d`, concatenable.
#[derive(Clone, Copy)]
pub(super) struct Span(pub i64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span_ms(&text).map(Self)
    }
}

/// A duration that may be negative.
#[derive(Clone, Copy)]
pub(super) struct Shift(pub i64);

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(&text)),
        };
        span_ms(rest).map(|ms| Self(sign * ms))
    }
}

fn span_ms<E: de::Error>(text: &str) -> Result<i64, E> {
    let ms = duration::parse_ms(text).map_err(|malformed| E::custom(format!("`{text}` {malformed}")))?;
    if ms > MAX_DURATION_MS {
        return Err(E::custom(format!("`{text}` is more than a year")));
    }
    Ok(ms)
}
