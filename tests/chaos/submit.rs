//! Those who submit: each in its own way, all the while the fleet is under fire, repeating what had no answer. Only what
//! was acknowledged to them counts.

use crate::fleet::{Slot, reprieve};
use crate::provider::client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// What one submitter knows.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// By key.
    pub keyed: BTreeMap<String, String>,
    /// Acknowledged without a key.
    pub unkeyed: Vec<String>,
    /// Submissions without an answer, or with a problem: those with a key were repeated.
    pub broken_off: u64,
    /// A key that was acknowledged with two ids.
    pub contradicted: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// NDJSON to `/v1/jobs/bulk`, with a key.
    Bulk,
    /// `reprieve submit FILE --key K`, on the database.
    Command,
    /// `POST /v1/jobs` with a key.
    Keyed,
    /// `POST /v1/jobs` without one: what had no answer may have become a job, too.
    Unkeyed,
}

/// The four of a drill: name, jobs per submission, share of the jobs in percent.
pub const MANNERS: [(Manner, usize, usize); 4] =
    [(Manner::Bulk, 40, 40), (Manner::Command, 60, 44), (Manner::Keyed, 1, 8), (Manner::Unkeyed, 1, 8)];

pub fn question(seed: u64, n: usize) -> String {
    format!("Question {n} of {seed}?")
}

fn spec(seed: u64, n: usize) -> Value {
    json!({"model": format!("m-{}", n % 5), "provider": "sim", "queue": format!("q-{}", n % 3),
           "input": question(seed, n), "labels": {"n": n.to_string()}, "stream": !n.is_multiple_of(4)})
}

pub struct Submitter<'a> {
    pub manner: Manner,
    pub seed: u64,
    pub dir: &'a Path,
    pub config: PathBuf,
    pub front: &'a Slot,
    /// The jobs, and how many go at once.
    pub jobs: Vec<usize>,
    pub at_once: usize,
    /// The submissions are spread evenly over this.
    pub over: Duration,
}

impl Submitter<'_> {
    pub async fn run(self) -> Acknowledged {
        let http = client();
        let mut known = Acknowledged::default();
        let started = Instant::now();
        let chunks: Vec<&[usize]> = self.jobs.chunks(self.at_once).collect();
        for (chunk, members) in chunks.iter().enumerate() {
            tokio::time::sleep_until(
                started + self.over * u32::try_from(chunk).unwrap() / u32::try_from(chunks.len()).unwrap(),
            )
            .await;
            let key = format!("{:?}-{chunk}", self.manner).to_lowercase();
            while !self.once(&http, &key, members, &mut known).await {
                known.broken_off += 1;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
        known
    }

    /// One submission; whether all of it was acknowledged.
    async fn once(&self, http: &reqwest::Client, key: &str, members: &[usize], known: &mut Acknowledged) -> bool {
        let acks = match self.manner {
            Manner::Bulk => self.bulk(http, key, members).await,
            Manner::Command => self.command(key, members).await,
            Manner::Keyed => self.single(http, Some(key), members[0]).await,
            Manner::Unkeyed => {
                let acks = self.single(http, None, members[0]).await;
                known.unkeyed.extend(acks.iter().map(|(_, id)| id.clone()));
                return !acks.is_empty();
            }
        };
        let whole = acks.len() == members.len();
        for (key, id) in acks {
            let before = known.keyed.insert(key.clone(), id.clone());
            if before.is_some_and(|before| before != id) {
                known.contradicted.push(key);
            }
        }
        whole
    }

    /// Where the front serves now; it may be on its way to an end.
    async fn front(&self) -> String {
        let (_, life) = self.front.life().await;
        let mut greeting = life.greeting.clone();
        let said = tokio::time::timeout(Duration::from_secs(2), greeting.wait_for(Option::is_some)).await;
        let line = said.ok().and_then(|said| said.ok().and_then(|line| line.clone())).unwrap_or_default();
        line.split_whitespace().find(|word| word.starts_with("http://")).unwrap_or("http://127.0.0.1:9").to_owned()
    }

    async fn single(&self, http: &reqwest::Client, key: Option<&str>, n: usize) -> Vec<(String, String)> {
        let mut request = http.post(format!("{}/v1/jobs", self.front().await)).json(&spec(self.seed, n));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let Ok(response) = request.send().await else { return Vec::new() };
        let accepted = response.status().is_success();
        let Ok(body) = response.json::<Value>().await else { return Vec::new() };
        match body["id"].as_str() {
            Some(id) if accepted => vec![(key.unwrap_or_default().to_owned(), id.to_owned())],
            _ => Vec::new(),
        }
    }

    /// An acknowledgement counts once its line has come, whatever becomes of the rest.
    async fn bulk(&self, http: &reqwest::Client, key: &str, members: &[usize]) -> Vec<(String, String)> {
        let lines: Vec<String> = members.iter().map(|n| spec(self.seed, *n).to_string()).collect();
        let request = http
            .post(format!("{}/v1/jobs/bulk", self.front().await))
            .header("content-type", "application/x-ndjson")
            .header("idempotency-key", key)
            .body(lines.join("\n"));
        let Ok(mut response) = request.send().await else { return Vec::new() };
        let mut said = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            said.extend_from_slice(&piece);
        }
        let said = String::from_utf8_lossy(&said);
        let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(|line| ack(key, &serde_json::from_str(line).ok()?)).collect()
    }

    async fn command(&self, key: &str, members: &[usize]) -> Vec<(String, String)> {
        let file = self.dir.join(format!("{key}.jsonl"));
        let lines: Vec<String> = members.iter().map(|n| spec(self.seed, *n).to_string()).collect();
        std::fs::write(&file, lines.join("\n")).unwrap();
        let mut command = reprieve(self.dir);
        command.arg("--json").arg("--config").arg(&self.config).arg("submit").arg(&file).args(["--key", key]);
        let output = command.output().await.unwrap();
        std::fs::remove_file(&file).unwrap();
        let Ok(said) = serde_json::from_slice::<Value>(&output.stdout) else { return Vec::new() };
        said["items"].as_array().into_iter().flatten().filter_map(|item| ack(key, item)).collect()
    }
}

fn ack(key: &str, line: &Value) -> Option<(String, String)> {
    Some((format!("{key}:{}", line.get("line")?), line.get("id")?.as_str()?.to_owned()))
}
