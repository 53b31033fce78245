//! The leaf of a fault, and the ways a call can end without completing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where in a call's life it broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Connect,
    Headers,
    Read,
}

impl Phase {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Headers => "headers",
            Self::Read => "read",
        }
    }
}

/// A failed model call, walked down to one of three leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    Response(ResponseFault),
    Transport(Transport),
    Terminal(Terminal),
}

/// The provider answered, over HTTP or inside a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseFault {
    /// The HTTP status; of a frame inside a 2xx, only a number 100..=599 that the frame itself states.
    pub status: Option<u16>,
    /// Every header value in the order received, names in lower case; a repeated header stands once per value.
    pub headers: Vec<(String, String)>,
    /// The body as it stood on the wire: JSON, or a string where it was no JSON. `None`: no body was read.
    pub body: Option<Value>,
    /// It came inside a 2xx, as a frame or as the whole body: the provider had taken the call up before it failed.
    pub inside_2xx: bool,
}

/// Nothing usable came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    pub phase: Option<Phase>,
    /// The deepest source that is no `reqwest::Error`, URL removed, printable, at most 120 characters.
    pub detail: String,
}

/// Sending it again would lose again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// A short reason in our own words; never a vendor's.
    pub reason: String,
}

/// Where a cancel struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelPoint {
    Waiting,
    Connecting,
    Sending,
    Streaming,
    InPlaceWait,
    Tool,
}

impl CancelPoint {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Sending => "sending",
            Self::Streaming => "streaming",
            Self::InPlaceWait => "in_place_wait",
            Self::Tool => "tool",
        }
    }
}

/// Our own word for a connection that this machine had no file or memory for.
pub(super) const EXHAUSTED: &str = "this machine is out of files or memory";

impl Fault {
    /// What a call meets that this machine has no file or memory for.
    #[must_use]
    pub fn exhausted() -> Self {
        Self::Transport(Transport { phase: Some(Phase::Connect), detail: EXHAUSTED.to_owned() })
    }
}

impl Ending {
    /// The call was not sent, because this machine had no file or memory for it: our trouble, not the provider's.
    #[must_use]
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Self::Fault(Fault::Transport(transport))
            if transport.phase == Some(Phase::Connect) && transport.detail == EXHAUSTED)
    }
}

/// Whether an error of the system says that this process or machine has no more files or memory.
#[must_use]
pub fn is_out_of_resources(error: &std::io::Error) -> bool {
    // ENFILE and EMFILE have no kind of their own, and these numbers on every Unix.
    error.kind() == std::io::ErrorKind::OutOfMemory || matches!(error.raw_os_error(), Some(23 | 24)) && cfg!(unix)
}

/// How a call ended that did not complete. One reading serves them all: [`super::Failure::read`].
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    Fault(Fault),
    /// The stream ended without a finish reason and without an error.
    Incomplete,
    /// A finish reason that is no completion (a cap, a context limit, a filter, a broken stream): the vendor's own word.
    Finish {
        reason: String,
    },
    /// The deadline or the turn's timeout cut the call.
    Deadline,
    Cancelled {
        at: CancelPoint,
    },
}
