//! Dates and clock times as people write them: `2026-04-01 at 00:00 UTC`, `Nov 12th, 2025 3:41 PM`, `3pm
//! (Europe/Berlin)`. Read at the start of a text; what follows is not looked at.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// A cursor over ASCII lower-case text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// What a text begins with: an instant in Unix milliseconds, and how many bytes it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub at_ms: i64,
    pub len: usize,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Reads a date, a date with a time, or a time alone (its next occurrence after `received_ms`). `text` is in lower case;
/// without a zone of its own it is read in `zone`.
pub(super) fn read(text: &str, received_ms: i64, zone: &TimeZone) -> Option<Read> {
    let mut reader = Reader { text, at: 0 };
    let date = reader.date();
    let time = match date {
        Some(_) => reader.time_after_date(),
        None => reader.clock(),
    };
    if date.is_none() && time.is_none() {
        return None;
    }
    let own = reader.zone();
    let zone = own.unwrap_or_else(|| zone.clone());
    let received = Timestamp::from_millisecond(received_ms).ok()?.to_zoned_datetime(zone.clone());
    let time = time.unwrap_or(Time::midnight());
    let instant = |date: Date| {
        let zoned = DateTime::from_parts(date, time).to_zoned_datetime(zone.clone()).ok()?;
        Some(zoned.timestamp().as_millisecond())
    };
    let at_ms = match date {
        Some((Some(year), month, day)) => instant(Date::new(year, month, day).ok()?)?,
        // Without a year: the next one to come.
        Some((None, month, day)) => {
            let this = instant(Date::new(received.year(), month, day).ok()?)?;
            if this > received_ms {
                this
            } else {
                instant(Date::new(received.year().checked_add(1)?, month, day).ok()?)?
            }
        }
        None => {
            let today = instant(received.date())?;
            if today > received_ms { today } else { instant(received.date().checked_add(1.day()).ok()?)? }
        }
    };
    Some(Read { at_ms, len: reader.at })
}

/// The zone of a rule: an IANA name or a fixed offset (`+08:00`).
pub(in crate::failure) fn zone_named(name: &str) -> Option<TimeZone> {
    if name.starts_with(['+', '-']) {
        let mut reader = Reader { text: name, at: 0 };
        return reader.offset().map(TimeZone::fixed).filter(|_| reader.at == name.len());
    }
    TimeZone::get(name).ok()
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, literal: &str) -> bool {
        let hit = self.rest().starts_with(literal);
        if hit {
            self.at += literal.len();
        }
        hit
    }

    /// Tries a reading; whatever it took is given back where it fails.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.at;
        let found = read(self);
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// One to `most` digits, and how many they were.
    fn number(&mut self, most: usize) -> Option<(i32, usize)> {
        let len = self.rest().bytes().take(most + 1).take_while(u8::is_ascii_digit).count();
        if len == 0 || len > most {
            return None;
        }
        let value = self.rest().get(..len)?.parse().ok()?;
        self.at += len;
        Some((value, len))
    }

    fn small(&mut self, most: usize) -> Option<i8> {
        self.number(most).and_then(|(value, _)| i8::try_from(value).ok())
    }

    fn date(&mut self) -> Option<(Option<i16>, i8, i8)> {
        self.attempt(Self::iso_date).or_else(|| self.attempt(Self::named_date))
    }

    fn iso_date(&mut self) -> Option<(Option<i16>, i8, i8)> {
        let (year, len) = self.number(4)?;
        if len != 4 {
            return None;
        }
        let mark = if self.eat("-") {
            "-"
        } else if self.eat("/") {
            "/"
        } else {
            return None;
        };
        let month = self.small(2)?;
        if !self.eat(mark) {
            return None;
        }
        let day = self.small(2)?;
        Some((Some(i16::try_from(year).ok()?), month, day))
    }

    /// `nov 12th, 2025`, `12 nov 2025`, `tue, 12 nov 2025`, `nov 12`.
    fn named_date(&mut self) -> Option<(Option<i16>, i8, i8)> {
        if self.word_of(&WEEKDAYS).is_some() {
            let _ = self.eat(",");
            let _ = self.eat(" ");
        }
        let (month, day) = if let Some(month) = self.word_of(&MONTHS) {
            let _ = self.eat(".");
            if !self.eat(" ") {
                return None;
            }
            (month, self.day()?)
        } else {
            let day = self.day()?;
            if !(self.eat(" of ") || self.eat(" ") || self.eat("-")) {
                return None;
            }
            (self.word_of(&MONTHS)?, day)
        };
        let year = self.attempt(|reader| {
            let _ = reader.eat(",");
            if !(reader.eat(" ") || reader.eat("-")) {
                return None;
            }
            let (year, len) = reader.number(4)?;
            i16::try_from(year).ok().filter(|_| len == 4 && !reader.rest().starts_with(':'))
        });
        Some((year, month, day))
    }

    fn day(&mut self) -> Option<i8> {
        let day = self.small(2)?;
        for suffix in ["st", "nd", "rd", "th"] {
            if self.eat(suffix) {
                break;
            }
        }
        Some(day)
    }

    /// The number, from 1, of a name or of its first three letters (`sept` too).
    fn word_of(&mut self, names: &[&str]) -> Option<i8> {
        let word: String = self.rest().chars().take(10).take_while(char::is_ascii_lowercase).collect();
        if word.len() < 3 {
            return None;
        }
        let index = names.iter().position(|name| *name == word || (word.len() <= 4 && name.starts_with(&word)))?;
        self.at += word.len();
        i8::try_from(index + 1).ok()
    }

    fn time_after_date(&mut self) -> Option<Time> {
        self.attempt(|reader| {
            if !["t", " at ", ", at ", ", ", " - ", " "].iter().any(|mark| reader.eat(mark)) {
                return None;
            }
            reader.clock()
        })
    }

    /// `15:00`, `05:38:28`, `3pm`, `3:42 pm`, `midnight`. A bare number is no time.
    fn clock(&mut self) -> Option<Time> {
        if self.eat("midnight") {
            return Some(Time::midnight());
        }
        self.attempt(|reader| {
            let hour = reader.small(2)?;
            let mut minute = 0;
            let mut second = 0;
            let mut nanos = 0;
            let mut colon = false;
            if reader.eat(":") {
                colon = true;
                minute = reader.small(2)?;
                if reader.eat(":") {
                    second = reader.small(2)?;
                    nanos = reader.attempt(Self::fraction).unwrap_or(0);
                }
            }
            let half = reader.attempt(|reader| {
                let _ = reader.eat(" ");
                if reader.eat("am") || reader.eat("a.m.") {
                    Some(0)
                } else if reader.eat("pm") || reader.eat("p.m.") {
                    Some(12)
                } else {
                    None
                }
            });
            if reader.rest().starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let hour = match half {
                Some(_) if !(1..=12).contains(&hour) => return None,
                Some(half) => hour % 12 + half,
                None if colon => hour,
                None => return None,
            };
            Time::new(hour, minute, second, nanos).ok()
        })
    }

    fn fraction(&mut self) -> Option<i32> {
        if !self.eat(".") {
            return None;
        }
        let digits: String = self.rest().chars().take(9).take_while(char::is_ascii_digit).collect();
        if digits.is_empty() {
            return None;
        }
        let more = self.rest().bytes().skip(digits.len()).take(32).take_while(u8::is_ascii_digit).count();
        self.at += digits.len() + more;
        format!("{digits:0<9}").parse().ok()
    }

    /// `utc`, `z`, `gmt`, `utc+8`, `+08:00`, `+0800 cst`, `(europe/berlin)`, `pt`.
    fn zone(&mut self) -> Option<TimeZone> {
        self.attempt(|reader| {
            let _ = reader.eat(" ");
            let open = reader.eat("(");
            let zone = reader.zone_word()?;
            if open && !reader.eat(")") {
                return None;
            }
            Some(zone)
        })
    }

    fn zone_word(&mut self) -> Option<TimeZone> {
        if self.rest().starts_with(['+', '-']) {
            return self.offset().map(TimeZone::fixed);
        }
        let word: String =
            self.rest().chars().take(40).take_while(|c| c.is_ascii_lowercase() || matches!(c, '/' | '_')).collect();
        let hours = |hours| Offset::from_hours(hours).ok().map(TimeZone::fixed);
        let zone = match word.as_str() {
            "utc" | "gmt" => {
                self.at += word.len();
                let shift = if self.rest().starts_with(['+', '-']) { self.offset() } else { None };
                return Some(shift.map_or(TimeZone::UTC, TimeZone::fixed));
            }
            "z" => Some(TimeZone::UTC),
            "pst" => hours(-8),
            "pdt" => hours(-7),
            "est" => hours(-5),
            "edt" => hours(-4),
            "jst" => hours(9),
            "pt" | "pacific" => TimeZone::get("America/Los_Angeles").ok(),
            "et" | "eastern" => TimeZone::get("America/New_York").ok(),
            name if name.contains('/') => TimeZone::get(name).ok(),
            _ => None,
        }?;
        self.at += word.len();
        Some(zone)
    }

    /// `+8`, `+08`, `+0800`, `+08:00`.
    fn offset(&mut self) -> Option<Offset> {
        self.attempt(|reader| {
            let sign = if reader.eat("+") {
                1
            } else if reader.eat("-") {
                -1
            } else {
                return None;
            };
            let (value, len) = reader.number(4)?;
            let (hours, minutes) = match len {
                3 | 4 => (value / 100, value % 100),
                _ if reader.eat(":") => (value, reader.number(2)?.0),
                _ => (value, 0),
            };
            if hours > 14 || minutes > 59 {
                return None;
            }
            Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-09-01T12:00:00Z
    const NOW_MS: i64 = 1_788_264_000_000;

    fn at(text: &str) -> Option<String> {
        let read = read(&text.to_ascii_lowercase(), NOW_MS, &TimeZone::UTC)?;
        Some(Timestamp::from_millisecond(read.at_ms).ok()?.to_string())
    }

    #[test]
    fn dates_as_people_write_them() {
        for (text, instant) in [
            ("2026-09-09 05:38:28", "2026-09-09T05:38:28Z"),
            ("2026-09-09T05:38:28.5Z and more", "2026-09-09T05:38:28.5Z"),
            ("2026-10-01 at 00:00 UTC.", "2026-10-01T00:00:00Z"),
            ("2026/10/01", "2026-10-01T00:00:00Z"),
            ("2026-09-09 05:38:28 +0800 CST", "2026-09-08T21:38:28Z"),
            ("2026-09-09 05:38:28 (UTC+8)", "2026-09-08T21:38:28Z"),
            ("Nov 12th, 2026 3:41 PM.", "2026-11-12T15:41:00Z"),
            ("Sept 2, 3pm", "2026-09-02T15:00:00Z"),
            ("Jan 2 at 3am", "2027-01-02T03:00:00Z"),
            ("Tue, 08 Sep 2026 12:00:45 GMT", "2026-09-08T12:00:45Z"),
            ("3pm", "2026-09-01T15:00:00Z"),
            ("11:30 am", "2026-09-02T11:30:00Z"),
            ("12am", "2026-09-02T00:00:00Z"),
            ("00:00 UTC", "2026-09-02T00:00:00Z"),
            ("midnight UTC", "2026-09-02T00:00:00Z"),
        ] {
            assert_eq!(at(text).as_deref(), Some(instant), "{text}");
        }
        for text in ["5", "5 hour", "13pm", "2026-13-01", "99:99", "next week", "2026"] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn a_named_zone_is_used_and_a_rules_zone_is_the_default() {
        let shanghai = zone_named("+08:00").unwrap();
        let read = read("2026-09-09 05:38:28", NOW_MS, &shanghai).unwrap();
        assert_eq!(read.at_ms, 1_788_903_508_000);
        assert!(zone_named("+99:00").is_none() && zone_named("Nowhere/Here").is_none());
    }
}
