//! `POST /v1/jobs/bulk`: jobs in, one a line; acknowledgements out, one a line, each after its job's commit.
//!
//! The body is never whole in memory: lines are gathered into groups (by number, by size, or after a moment without more),
//! each group is one call of the store, and its acknowledgements go out while the next lines come in. A client that does
//! not read yet is not waited for until [`UNREAD`] groups lie ready: many clients read only once they have sent all.

use super::jobs::conflict;
use super::lines::{Line, Lines};
use super::request::{key, media};
use super::server::Api;
use super::{Kind, Problem, Waits, shapes};
use crate::agent::{Directory, accept, limits};
use crate::store::{NewJob, Store, Submitted};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;

/// Jobs of one call of the store. Batches of 100 to 500 have nearly all there is to gain.
pub const GROUP: usize = 500;
/// Bytes of one call of the store.
pub const GROUP_BYTES: usize = 8 << 20;
/// How long a group that is not full waits for more lines.
const MOMENT: Duration = Duration::from_millis(10);
/// Groups of acknowledgements (at most [`GROUP`] each) that lie ready for a client that does not read yet: a million.
const UNREAD: usize = 2_000;

pub async fn submit<S: Store>(State(api): State<Api<S>>, request: Request) -> Result<Response, Problem> {
    media(request.headers(), &["application/x-ndjson", "application/ndjson", "application/jsonl"])?;
    let key = key(request.headers())?;
    let (acks, ready) = mpsc::channel::<Vec<Answer>>(UNREAD);
    let waits = request.extensions().get::<Waits>().copied().unwrap_or_default();
    tokio::spawn(take(api, key, request.into_body(), waits.body, acks));
    let stream = futures::stream::unfold(ready, |mut ready| async move {
        let answers = ready.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(rendered(&answers)), ready))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream)).into_response())
}

/// What became of a line. Small, since a million of them may lie ready.
struct Answer {
    line: u64,
    what: Result<Submitted, Box<Problem>>,
}

fn rendered(answers: &[Answer]) -> Bytes {
    let mut text = String::new();
    for Answer { line, what } in answers {
        let line = *line;
        let value = match what {
            Ok(Submitted::Accepted(id)) => json!(shapes::Ack { line, id: *id, duplicate: false }),
            Ok(Submitted::Duplicate(id)) => json!(shapes::Ack { line, id: *id, duplicate: true }),
            Ok(Submitted::Conflict(id)) => json!({"line": line, "error": conflict(*id).to_json()}),
            Err(problem) => json!({"line": line, "error": problem.to_json()}),
        };
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text.into()
}

/// Lines that go to the store together.
#[derive(Default)]
struct Group {
    jobs: Vec<NewJob>,
    bytes: usize,
    /// In the order of their lines; `None` where the store has yet to answer.
    answers: Vec<(u64, Option<Box<Problem>>)>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.answers.len() >= GROUP || self.bytes >= GROUP_BYTES
    }

    fn add(&mut self, line: Line, directory: &Directory, key: Option<&str>, now_ms: i64) {
        let (number, accepted) = checked(line, directory, key, now_ms);
        match accepted {
            Ok(job) => {
                self.bytes += job.spec.len();
                self.jobs.push(job);
                self.answers.push((number, None));
            }
            Err(problem) => self.answers.push((number, Some(Box::new(problem)))),
        }
    }

    /// Submits what there is, and says what became of every line.
    async fn commit<S: Store>(self, store: &S) -> Vec<Answer> {
        let committed = if self.jobs.is_empty() { Ok(Vec::new()) } else { store.submit(self.jobs).await };
        let mut committed = committed.map(Vec::into_iter).map_err(Problem::from);
        self.answers
            .into_iter()
            .map(|(line, problem)| {
                let what = match (problem, &mut committed) {
                    (Some(problem), _) => Err(problem),
                    (None, Ok(answers)) => answers.next().ok_or_else(|| {
                        Box::new(Problem::new(Kind::Internal, "the database took a job and did not answer"))
                    }),
                    (None, Err(problem)) => Err(Box::new(problem.clone())),
                };
                Answer { line, what }
            })
            .collect()
    }
}

/// One line as a job. Line n of a submission with key K has the key `K:n`.
///
/// # Errors
/// What is wrong with it.
pub fn checked(line: Line, directory: &Directory, key: Option<&str>, now_ms: i64) -> (u64, Result<NewJob, Problem>) {
    match line {
        Line::Text { number, text } => {
            let key = key.map(|key| format!("{key}:{number}"));
            (number, accept(&text, directory, now_ms, key).map_err(Problem::from))
        }
        Line::NoText { number } => (number, Err(Problem::new(Kind::Malformed, "the line is no UTF-8"))),
        Line::TooLong { number } => {
            let what = format!("a job may have {} bytes, and this line is longer", limits::JOB_BYTES);
            (number, Err(Problem::new(Kind::TooLarge, what)))
        }
    }
}

/// Takes the body in until it ends or nobody reads the answers any more. A body that breaks off loses only the line that
/// had not ended.
async fn take<S: Store>(
    api: Api<S>,
    key: Option<String>,
    body: Body,
    patience: Duration,
    acks: mpsc::Sender<Vec<Answer>>,
) {
    let mut pieces = body.into_data_stream();
    let mut lines = Lines::new(limits::JOB_BYTES);
    let mut group = Group::default();
    let now_ms = || api.store.clock().now_ms();
    // When the group that has begun is committed at the latest.
    let mut due = tokio::time::Instant::now();
    loop {
        let piece = if group.answers.is_empty() {
            // One that sends nothing for so long has broken off, whatever its socket says.
            let piece = tokio::time::timeout(patience, pieces.next()).await;
            Some(piece.unwrap_or_else(|late| Some(Err(axum::Error::new(late)))))
        } else {
            tokio::time::timeout_at(due, pieces.next()).await.ok()
        };
        let (come, ended) = match piece {
            None => (Vec::new(), false),
            Some(Some(Ok(piece))) => (lines.push(&piece), false),
            Some(Some(Err(_))) => (Vec::new(), true),
            Some(None) => (lines.finish().into_iter().collect(), true),
        };
        for line in come {
            if group.answers.is_empty() {
                due = tokio::time::Instant::now() + MOMENT;
            }
            group.add(line, &api.directory, key.as_deref(), now_ms());
            if group.is_full() && !flush(&mut group, &api.store, &acks).await {
                return;
            }
        }
        let over = ended || tokio::time::Instant::now() >= due;
        if over && !flush(&mut group, &api.store, &acks).await {
            return;
        }
        if ended {
            return;
        }
    }
}

/// Commits the group and hands its answers over. `false`: nobody reads any more.
async fn flush<S: Store>(group: &mut Group, store: &S, acks: &mpsc::Sender<Vec<Answer>>) -> bool {
    let group = std::mem::take(group);
    if group.answers.is_empty() {
        return true;
    }
    acks.send(group.commit(store).await).await.is_ok()
}
