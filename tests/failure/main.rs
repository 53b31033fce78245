//! How failures are read: a collection of real ones, and properties that must hold for any.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod arbitrary;
mod carriers;
mod corpus;
mod decisions;
mod fuzz;
mod windows;

use reprieve::failure::{Ending, Failure, Fault, Receipt, ResponseFault, Rules};
use serde_json::Value;
use std::sync::LazyLock;

/// Receipt of every refusal here: 2026-09-21T14:13:20Z.
pub const NOW_MS: i64 = 1_790_000_000_000;

pub static RULES: LazyLock<Rules> = LazyLock::new(Rules::embedded);

pub fn receipt() -> Receipt {
    Receipt {
        received_ms: NOW_MS,
        send_took_ms: 0,
        provider: "api.example.com".into(),
        account: None,
        model: "m".into(),
        attempts: Some(1),
        redact_vendor_messages: true,
    }
}

pub fn read(status: Option<u16>, headers: &[(String, String)], body: Option<Value>) -> Failure {
    read_fault(Fault::Response(ResponseFault { status, headers: headers.to_vec(), body, inside_2xx: false }))
}

pub fn read_fault(fault: Fault) -> Failure {
    Failure::read(&Ending::Fault(fault), &receipt(), &RULES)
}

pub fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
