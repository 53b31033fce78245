//! The few words that several commands say alike.

use super::out::Out;
use super::table::printable;
use super::trouble::Trouble;
use crate::failure::ErrorDocument;

/// A stored error document in one sentence.
#[must_use]
pub fn ending(error: &str) -> String {
    match serde_json::from_str::<ErrorDocument>(error) {
        Ok(document) => printable(&document.message),
        Err(_) => "its error cannot be read; `--json` shows it as it is stored".to_owned(),
    }
}

/// How to get the next page of a list.
///
/// # Errors
/// When stdout is closed or full.
pub fn more(cursor: Option<&str>, out: &mut Out) -> Result<(), Trouble> {
    match cursor {
        Some(cursor) => out.line(format!("more: the same with --cursor {cursor}")),
        None => Ok(()),
    }
}
