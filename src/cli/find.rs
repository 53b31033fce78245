//! From what a person types to a job: a whole id, the short form that lists show, or its first 8 digits and more.

use super::trouble::Trouble;
use crate::api::Kind;
use crate::store::{JobId, Query, Store};

/// The window that 8 leading digits of a UUID v7 name, in milliseconds (2¹⁶), and a margin: an id is made a moment
/// before its job is accepted.
const WINDOW_MS: i64 = 1 << 16;
const MARGIN_MS: i64 = 60_000;
const PAGE: u32 = 500;
/// Jobs looked through before giving up: a minute of the busiest queue.
const PAGES: usize = 400;
/// Ids named where several fit.
const NAMED: usize = 5;

/// The job that `text` names.
///
/// # Errors
/// When it is no id, names no job, or could be several.
pub async fn job_id<S: Store>(store: &S, text: &str) -> Result<JobId, Trouble> {
    if let Ok(id) = text.parse::<JobId>() {
        return Ok(id);
    }
    let (head, tail) = text.split_once('…').or_else(|| text.split_once("...")).unwrap_or((text, ""));
    let (head, tail) = (head.to_ascii_lowercase(), tail.to_ascii_lowercase());
    let hexadecimal = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let first =
        head.get(..8).filter(|first| first.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(|| no_id(text))?;
    if !hexadecimal(&head) || !hexadecimal(&tail) {
        return Err(no_id(text));
    }
    let window_ms = i64::from_str_radix(first, 16).map_err(|_| no_id(text))? * WINDOW_MS;
    let mut query = Query {
        since_ms: Some(window_ms - MARGIN_MS),
        until_ms: Some(window_ms + WINDOW_MS + MARGIN_MS),
        limit: PAGE,
        now_ms: store.clock().now_ms(),
        ..Query::default()
    };
    let mut found: Vec<JobId> = Vec::new();
    for _ in 0..PAGES {
        let page = store.jobs(query.clone()).await?;
        let named = |id: &String| id.starts_with(&head) && id.ends_with(&tail);
        found.extend(page.items.iter().map(|job| job.id).filter(|id| named(&id.to_string())));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    match found.as_slice() {
        [] => Err(Trouble::new(Kind::NotFound, format!("there is no job {text}; `reprieve jobs` lists them"))),
        [one] => Ok(*one),
        several => {
            let shown = several.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let more = if several.len() > NAMED { ", …" } else { "" };
            Err(Trouble::usage(format!(
                "{text} could be any of {shown}{more}; write it as lists show it (0199c2f4…9c2e), or whole"
            )))
        }
    }
}

fn no_id(text: &str) -> Trouble {
    let text = text.escape_debug();
    Trouble::usage(format!(
        "`{text}` is no job id; write it whole, as lists show it (0199c2f4…9c2e), or its first 8 digits or more"
    ))
}
