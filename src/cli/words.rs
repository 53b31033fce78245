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

/// The same for one cell of a table: without the words that every model failure begins with, so that where it is cut the
/// status and the code still show.
#[must_use]
pub fn ending_in_brief(error: &str) -> String {
    let whole = ending(error);
    let rest = whole.strip_prefix("model_error: ").unwrap_or(&whole);
    let rest = rest.strip_prefix("model returned ").unwrap_or(rest);
    rest.replacen("; code=", " ", 1)
}

/// A source for one cell of a table: of a pointer into a body its last member.
#[must_use]
pub fn source_in_brief(source: &str) -> &str {
    source.strip_prefix('/').map_or(source, |pointer| pointer.rsplit('/').next().unwrap_or(pointer))
}

/// Text in lines of at most `width` columns, broken at blanks where it can be.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = |line: &str| line.is_empty() || line.width() + 1 + word.width() <= width;
        if !lines.last().is_some_and(|line| fits(line)) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
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

/// The command that one would want next.
///
/// # Errors
/// When stdout is closed or full.
pub fn next(command: &str, why: &str, out: &mut Out) -> Result<(), Trouble> {
    out.line(format!("next: reprieve {command}  ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_begins_with_what_matters() {
        let document =
            |message: &str| serde_json::json!({"code": "model_incomplete", "message": message, "retryable": false});
        let brief = |message: &str| ending_in_brief(&document(message).to_string());
        assert_eq!(
            brief("model_error: model returned HTTP 401; code=invalid_api_key; type=t"),
            "HTTP 401 invalid_api_key; type=t"
        );
        assert_eq!(brief("model_error: stream broke off"), "stream broke off");
        assert_eq!(brief("the deadline passed"), "the deadline passed");
    }

    #[test]
    fn a_pointer_is_named_by_its_last_member() {
        assert_eq!(source_in_brief("/error/details/1/retryDelay"), "retryDelay");
        assert_eq!(source_in_brief("retry-after"), "retry-after");
    }
}
