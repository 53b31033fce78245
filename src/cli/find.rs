//! From what a person types to a job: a whole id, the short form that lists show, or its first 8 digits and more.

use super::trouble::Trouble;
use crate::api::Kind;
use crate::store::{JobId, Store};
use uuid::Uuid;

/// Ids named where several fit.
const NAMED: usize = 5;
const DIGITS: usize = 32;

/// The job that `text` names.
///
/// # Errors
/// When it is no id, names no job, or could be several.
pub async fn job_id<S: Store>(store: &S, text: &str) -> Result<JobId, Trouble> {
    if let Ok(id) = text.parse::<JobId>() {
        return Ok(id);
    }
    let (head, tail) = text.split_once('…').or_else(|| text.split_once("...")).unwrap_or((text, ""));
    let digits = |part: &str| part.to_ascii_lowercase().replace('-', "");
    let (head, tail) = (digits(head), digits(tail));
    if head.len() < 8 || head.len() > DIGITS || tail.len() > DIGITS {
        return Err(no_id(text));
    }
    if !tail.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(no_id(text));
    }
    // Whatever is no digit is no id either.
    let filled = |with: &str| {
        let whole = format!("{head}{}", with.repeat(DIGITS - head.len()));
        Uuid::try_parse(&whole).map(JobId).map_err(|_| no_id(text))
    };
    let limit = u32::try_from(NAMED + 1).unwrap_or(u32::MAX);
    let found = store.job_ids(filled("0")?, filled("f")?, tail, limit).await?;
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
