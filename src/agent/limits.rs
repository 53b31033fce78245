//! The sizes of what a submitter may hand over, in one table (bytes of UTF-8 where not said otherwise). A limit on
//! everything: what is not bounded here is bounded by the size of the whole job.

/// A whole job as submitted.
pub const JOB_BYTES: usize = 8 << 20;
/// The text of a job's transcript beyond its own input; one that outgrows it fails as `transcript_limit`.
pub const TRANSCRIPT_BYTES: usize = 32 << 20;
/// Messages of one job.
pub const MESSAGES: usize = 10_000;
/// Labels of one job.
pub const LABELS: usize = 64;
/// A label's key, of `[A-Za-z0-9_.-]`.
pub const LABEL_KEY_BYTES: usize = 64;
/// A label's value.
pub const LABEL_VALUE_BYTES: usize = 256;
/// Names of queues, provider entries and policies, of `[A-Za-z0-9_.-]`.
pub const NAME_BYTES: usize = 64;
/// A tenant, of `[A-Za-z0-9_.:/@-]`.
pub const TENANT_BYTES: usize = 128;
/// A model's name, without control characters.
pub const MODEL_BYTES: usize = 256;
/// An idempotency key, without control characters.
pub const KEY_BYTES: usize = 255;
/// The path of a `raw` job.
pub const RAW_PATH_BYTES: usize = 2_048;
/// Stop sequences, and the bytes of one.
pub const STOPS: usize = 16;
pub const STOP_BYTES: usize = 256;
/// `max_turns`.
pub const MAX_TURNS: u32 = 10_000;
/// `priority` lies within ± this.
pub const PRIORITY: i16 = 100;
/// `deadline`, `not_before` and `turn_timeout`, in milliseconds: 366 days.
pub const AHEAD_MS: i64 = 366 * 86_400_000;
