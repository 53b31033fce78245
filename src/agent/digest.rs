//! A digest of the canonical spec: equal for two texts that mean the same job.
//!
//! Canonical is: members sorted by name at every level, no blanks, members of the whole that are null left out, and
//! without `idempotency_key` (it names the submission, not the job).

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of the canonical form, in lower-case hexadecimal.
pub(super) fn of(spec: &Value) -> String {
    let mut canonical = String::new();
    match spec {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| *name != "idempotency_key" && !value.is_null());
            write_object(kept, &mut canonical);
        }
        other => write_value(other, &mut canonical),
    }
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(canonical.as_bytes()) {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => write_object(members.iter(), out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

fn write_object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut String) {
    let mut members = members.collect::<Vec<_>>();
    members.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let _ = write!(out, "{}:", Value::from(name.as_str()));
        write_value(value, out);
    }
    out.push('}');
}
