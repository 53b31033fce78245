//! `reprieve classify`: captured responses in, the contract's reading out, one compact line each.

use crate::failure::Rules;
use crate::failure::capture::{CaptureInput, Values};
use crate::provider::capture;
use crate::recovery::Policy;
use serde_json::json;
use std::io::{self, BufRead, Write};

/// Reads a stream of JSON values and answers each on a line of its own, a bad one with `{"error":…}`. `now_ms` stands in
/// for a receipt that is not given. Returns whether all were good.
///
/// # Errors
/// When the input cannot be read or the output not written.
pub fn run(input: impl BufRead, mut out: impl Write, rules: &Rules, policy: &Policy, now_ms: i64) -> io::Result<bool> {
    let mut all_good = true;
    for value in Values::new(input) {
        match value?.and_then(|value| CaptureInput::parse(&value)) {
            Ok(captured) => serde_json::to_writer(&mut out, &capture::classify(&captured, rules, policy, now_ms))?,
            Err(why) => {
                all_good = false;
                serde_json::to_writer(&mut out, &json!({ "error": why }))?;
            }
        }
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(all_good)
}
