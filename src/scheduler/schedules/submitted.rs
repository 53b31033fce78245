//! A schedule as it is submitted: every member has an effect or is refused by its place.

use crate::agent::read::{Members, name, text, tree, word};
use crate::agent::{self, Directory, JobSpec, SpecError, When, limits};
use crate::scheduler::calendar::{Calendar, Malformed};
use crate::store::{CatchUp, NewSchedule, Overlap, ScheduleId};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most bytes beside the job itself.
const BESIDE_BYTES: usize = 16 << 10;
/// As queues and entries are named.
const NAME_MARKS: &str = "_.-";
const KNOWN: [&str; 6] = ["name", "cron", "zone", "job", "catch_up", "overlap"];

/// The one part of the text that is needed as it was written.
#[derive(Deserialize)]
struct Verbatim<'a> {
    #[serde(borrow)]
    job: &'a RawValue,
}

/// Reads `{"name", "cron", "zone", "job": {…}, "catch_up", "overlap"}`: a unique name, the instants (`zone` is UTC unless
/// said otherwise), and the job to submit at each, kept byte for byte. `catch_up` is `last` unless said otherwise, and
/// `overlap` `skip`.
///
/// # Errors
/// The first thing that is wrong, by its place.
pub fn accept(body: &str, directory: &Directory, now_ms: i64) -> Result<NewSchedule, SpecError> {
    let most = limits::JOB_BYTES + BESIDE_BYTES;
    if body.len() > most {
        let problem = format!("the schedule has {} bytes; at most {most} are taken", body.len());
        return Err(SpecError::new("/", problem));
    }
    let mut given = Members::of(tree(body)?, "")?;
    given.check(&KNOWN, &[])?;
    let missing = |member: &str, what: &str| SpecError::new(format!("/{member}"), format!("is missing: {what}"));
    let named = given.take_with("name", |value, at| name(value, at, limits::NAME_BYTES, NAME_MARKS))?;
    let named = named.ok_or_else(|| missing("name", "name the schedule; no other may have the name"))?;
    let cron = given.take_with("cron", |value, at| text(value, at, limits::JOB_BYTES))?;
    let cron = cron.ok_or_else(|| missing("cron", "say when, such as `30 2 * * MON-FRI`"))?;
    let zone = given.take_with("zone", |value, at| text(value, at, limits::NAME_BYTES))?;
    let calendar = Calendar::parse(&cron, zone.as_deref().unwrap_or("UTC")).map_err(|error| match error {
        Malformed::Cron(problem) => SpecError::new("/cron", problem),
        Malformed::Zone(problem) => SpecError::new("/zone", problem),
    })?;
    let catch_up = [("none", CatchUp::None), ("last", CatchUp::Last), ("all", CatchUp::All)];
    let catch_up = given.read("catch_up", |value, at| word(value, at, &catch_up))?.unwrap_or(CatchUp::Last);
    let overlap = [("skip", Overlap::Skip), ("queue", Overlap::Queue)];
    let overlap = given.read("overlap", |value, at| word(value, at, &overlap))?.unwrap_or(Overlap::Skip);
    if !given.has("job") {
        return Err(missing("job", "give the job to submit"));
    }
    let verbatim: Verbatim<'_> = serde_json::from_str(body)
        .map_err(|error| SpecError::new("/job", format!("cannot be kept as it stands: {error}")))?;
    let spec = verbatim.job.get();
    check(spec, directory, now_ms).map_err(|error| SpecError::new(within(&error.at), error.problem))?;
    Ok(NewSchedule {
        id: ScheduleId::fresh(),
        name: named,
        cron,
        zone: calendar.zone().to_owned(),
        spec: spec.to_owned(),
        catch_up,
        overlap,
        next_ms: calendar.next_after(now_ms),
        created_ms: now_ms,
    })
}

/// A job that can be submitted again and again.
fn check(spec: &str, directory: &Directory, now_ms: i64) -> Result<(), SpecError> {
    let job = JobSpec::parse(spec)?;
    if job.idempotency_key.is_some() {
        let problem = "would make one job of all: a schedule submits a new one each time; remove it";
        return Err(SpecError::new("/idempotency_key", problem));
    }
    if job.not_before.is_some() {
        return Err(SpecError::new("/not_before", "the schedule itself says when: remove it"));
    }
    if matches!(job.deadline, Some(When::AtMs(_))) {
        let problem =
            "must be a duration such as `2h`, which counts from each firing; an instant passes once and for all";
        return Err(SpecError::new("/deadline", problem));
    }
    agent::accept(spec, directory, now_ms, None).map(|_| ())
}

/// A place in the job, seen from the schedule.
fn within(at: &str) -> String {
    format!("/job{}", at.strip_suffix('/').unwrap_or(at))
}
