//! When a schedule fires: a cron pattern on civil time, and the zone that makes instants of it. Pure.
//!
//! The pattern is matched against what the zone's clocks show. A time that clocks skip fires at the first instant after
//! the gap; one that they show twice fires once, the first time. What falls on one instant fires once.

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

mod fields;

/// The longest pattern that is read, in bytes: an alternative of every value of every field fits.
const CRON_BYTES: usize = 1_024;

/// Why there is no calendar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// What is wrong with the pattern, and what would be right.
    #[error("the cron pattern {0}")]
    Cron(String),
    #[error("the zone {0}")]
    Zone(String),
}

/// The instants at which a schedule fires.
#[derive(Clone, Debug)]
pub struct Calendar {
    pattern: Cron,
    zone: TimeZone,
    /// As the zone database spells it.
    zone_name: String,
}

impl Calendar {
    /// Reads a cron pattern (5 fields: minute, hour, day of month, month, day of week; or 6 with seconds first; or
    /// `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`) and an IANA zone.
    ///
    /// # Errors
    /// The field that is wrong and what would be right there; a zone that is not known; a pattern that no date matches.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, Malformed> {
        if cron.len() > CRON_BYTES {
            return Err(Malformed::Cron(format!("has {} bytes; at most {CRON_BYTES} are taken", cron.len())));
        }
        let numbers = fields::in_numbers(cron).map_err(Malformed::Cron)?;
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
        let pattern = parser.parse(&numbers).map_err(|error| Malformed::Cron(format!("is not understood: {error}")))?;
        let unknown =
            || Malformed::Zone("is not known; name it as the IANA database does, such as `Europe/Berlin`".into());
        let found = TimeZone::get(zone).map_err(|_| unknown())?;
        let zone_name = found.iana_name().ok_or_else(unknown)?.to_owned();
        let calendar = Self { pattern, zone: found, zone_name };
        if calendar.next_after(0).is_none() {
            return Err(Malformed::Cron("names a day that no month of it has: it would never fire".to_owned()));
        }
        Ok(calendar)
    }

    /// The zone as the database spells it.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    /// The first instant after `ms`; `None`: there is none within the calendar's bounds (the year 5000).
    #[must_use]
    pub fn next_after(&self, ms: i64) -> Option<i64> {
        let shown = self.zone.to_datetime(Timestamp::from_millisecond(ms).ok()?);
        let mut civil_s = TimeZone::UTC.to_timestamp(shown).ok()?.as_millisecond().div_euclid(1_000);
        loop {
            // Civil time is handed to the pattern as if it were UTC, which neither skips nor repeats.
            let from = DateTime::<Utc>::from_timestamp(civil_s, 0)?;
            civil_s = self.pattern.find_next_occurrence(&from, false).ok()?.timestamp();
            // What clocks show for the second time has fired the first time, before `ms`.
            let at_ms = self.instant_ms(civil_s)?;
            if at_ms > ms {
                return Some(at_ms);
            }
        }
    }

    /// The last instant after `after_ms` and at or before `until_ms`.
    #[must_use]
    pub fn last_within(&self, after_ms: i64, until_ms: i64) -> Option<i64> {
        let reaches = |from_ms: i64| self.next_after(from_ms).filter(|at_ms| *at_ms <= until_ms);
        let mut found = reaches(after_ms)?;
        // Between what is known to be followed by an instant within and what is not.
        let (mut from_ms, mut to_ms) = (found, until_ms);
        while from_ms < to_ms {
            let middle_ms = from_ms + (to_ms - from_ms) / 2;
            match reaches(middle_ms) {
                Some(at_ms) => (found, from_ms) = (at_ms, at_ms),
                None => to_ms = middle_ms,
            }
        }
        Some(found)
    }

    /// One sentence: when it fires, and in which zone.
    #[must_use]
    pub fn in_words(&self) -> String {
        let said = self.pattern.describe();
        let said = said.trim_end_matches('.').replacen("At every", "Every", 1);
        format!("{said}, {}", self.zone_name)
    }

    /// The instant at which clocks show a civil time, written as if it were in UTC.
    fn instant_ms(&self, civil_s: i64) -> Option<i64> {
        let civil = Timestamp::from_second(civil_s).ok()?;
        let shown = TimeZone::UTC.to_datetime(civil);
        let as_in = |offset: Offset| civil_s.checked_sub(i64::from(offset.seconds()));
        let at_s = match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => as_in(offset)?,
            AmbiguousOffset::Fold { before, after: _ } => as_in(before)?,
            AmbiguousOffset::Gap { before, after } => self.gap_end_s(as_in(after)?, as_in(before)?, after)?,
        };
        at_s.checked_mul(1_000)
    }

    /// When the clocks are set forward to `after`: between the two readings of a time that they skip.
    fn gap_end_s(&self, from_s: i64, to_s: i64, after: Offset) -> Option<i64> {
        let from = Timestamp::from_second(from_s).ok()?;
        let mut changes = self.zone.following(from).take_while(|change| change.timestamp().as_second() <= to_s);
        changes.find(|change| change.offset() == after).map(|change| change.timestamp().as_second())
    }
}

#[cfg(test)]
mod tests;
