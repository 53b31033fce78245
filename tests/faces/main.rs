//! The faces: the command line as processes, the API through real sockets, and the documents that describe them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::format_push_string)]

mod acts;
mod bad_input;
mod bulk;
mod commands;
mod compose;
mod explained;
mod help;
mod http;
mod http_audit;
mod http_steering;
mod misuse;
mod pinned;
mod readme;
mod rig;
mod runs;
mod served;
mod shapes;
mod shown;
