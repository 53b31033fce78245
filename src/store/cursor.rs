//! Cursors of lists: opaque to whoever is handed one, and refused where they were not handed out by the same list.

use crate::store::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Which list a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Jobs,
    JobsByEnd,
    Results,
    Failures,
    Resets,
}

impl List {
    fn letter(self) -> &'static str {
        match self {
            Self::Jobs => "j",
            Self::JobsByEnd => "d",
            Self::Results => "e",
            Self::Failures => "f",
            Self::Resets => "r",
        }
    }
}

pub(super) fn encode(list: List, place: &[String]) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}.{}", list.letter(), place.join(".")))
}

/// The place that a cursor names: exactly `parts` strings.
pub(super) fn decode(list: List, cursor: &str, parts: usize) -> Result<Vec<String>> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| Error::Cursor)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::Cursor)?;
    let mut words = text.split('.').map(str::to_owned);
    if words.next().as_deref() != Some(list.letter()) {
        return Err(Error::Cursor);
    }
    let place: Vec<String> = words.collect();
    if place.len() == parts { Ok(place) } else { Err(Error::Cursor) }
}

/// A place made of integers.
pub(super) fn decode_numbers<const N: usize>(list: List, cursor: &str) -> Result<[i64; N]> {
    let place = decode(list, cursor, N)?;
    let mut numbers = [0; N];
    for (number, word) in numbers.iter_mut().zip(&place) {
        *number = word.parse().map_err(|_| Error::Cursor)?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_no_other_list_takes_it() {
        let cursor = encode(List::Failures, &["17".into(), "-3".into()]);
        assert_eq!(decode_numbers::<2>(List::Failures, &cursor).unwrap(), [17, -3]);
        for wrong in [
            decode_numbers::<2>(List::Resets, &cursor),
            decode_numbers::<2>(List::Failures, "17"),
            decode_numbers::<2>(List::Failures, &encode(List::Failures, &["x".into(), "1".into()])),
        ] {
            assert!(matches!(wrong, Err(Error::Cursor)));
        }
        assert!(decode_numbers::<3>(List::Failures, &cursor).is_err());
    }
}
