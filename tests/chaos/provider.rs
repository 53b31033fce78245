//! The metered simulator as a process of its own, and everything its log said.

use crate::fleet::reprieve;
use reprieve::sim::{Log, LogEntry, Outcome, Stats};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// How often the log is read: long before the simulator forgets.
const READ: Duration = Duration::from_millis(500);

/// A metered provider that also drops, breaks and refuses by itself; every refusal names its reset. `sim-undisturbed` is
/// another key, of which nothing is asked.
pub const HARSH: &str = r#"name = "chaos"
[answer]
latency = "60ms"
chunk_latency = "6ms"
[[limits]]
name = "requests"
keys = ["sim-main"]
count = "requests"
limit = 1800
per = "1m"
burst = 40
[[rules]]
name = "plan"
keys = ["sim-main"]
models = ["m-1"]
every = 190
refuse = { kind = "plan_window", reset_in = "3s", closes = "key" }
[[rules]]
name = "window"
keys = ["sim-main"]
every = 130
refuse = { kind = "rate_limit_requests", reset_in = "2s" }
[[rules]]
name = "drops"
keys = ["sim-main"]
stream = true
every = 23
drop = { after_chunks = 3 }
[[rules]]
name = "breaks"
keys = ["sim-main"]
every = 37
refuse = { kind = "overloaded", reset = [] }
[[rules]]
name = "unfinished"
keys = ["sim-main"]
stream = true
every = 59
end = { after_chunks = 2 }
[[rules]]
name = "a spell of errors"
keys = ["sim-main"]
from = "6s"
until = "8s"
probability = 0.5
refuse = { kind = "server_error", reset_in = "1s", reset = ["retry-after"], closes = "nothing" }
[[rules]]
name = "slow"
keys = ["sim-main"]
every = 19
latency = "1500ms"
answer = {}
"#;

#[derive(Debug)]
pub struct Provider {
    pub url: String,
    child: Child,
    heard: Arc<Mutex<Heard>>,
    reading: JoinHandle<()>,
}

/// Its log, as far as it was read: what is in flight is read again.
#[derive(Debug, Default)]
pub struct Heard {
    pub entries: BTreeMap<u64, LogEntry>,
    /// Requests that the simulator forgot before they were read.
    pub forgotten: u64,
}

impl Provider {
    /// `reprieve sim`, in front of which `enter` may stand (`ip netns exec …`).
    pub async fn start(dir: &Path, scenario: &str, seed: u64) -> Self {
        let file = dir.join("scenario.toml");
        std::fs::write(&file, scenario).unwrap();
        let mut command = reprieve(dir);
        command.arg("sim").arg("--scenario").arg(&file).args(["--port", "0", "--seed", &seed.to_string()]);
        let (child, url) = spawn(command).await;
        let heard = Arc::<Mutex<Heard>>::default();
        let reading = tokio::spawn(read(url.clone(), Arc::clone(&heard)));
        Self { url, child, heard, reading }
    }

    pub async fn stats(&self) -> Stats {
        get(&client(), &format!("{}/_sim/stats", self.url)).await.unwrap()
    }

    /// Stops reading, reads once more, and hands over what was heard.
    pub async fn end(mut self) -> (Stats, Heard) {
        self.reading.abort();
        let _ = (&mut self.reading).await;
        read_on(&client(), &self.url, &self.heard).await;
        let stats = self.stats().await;
        self.child.kill().await.unwrap();
        (stats, std::mem::take(&mut *self.heard.lock().unwrap()))
    }
}

/// Starts a simulator and waits until it says where.
pub async fn spawn(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap_or_default();
    let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) else {
        panic!("the simulator did not start: {line}")
    };
    let url = url.to_owned();
    (child, url)
}

pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap()
}

async fn get<T: serde::de::DeserializeOwned>(http: &reqwest::Client, url: &str) -> reqwest::Result<T> {
    http.get(url).send().await?.json().await
}

async fn read(url: String, heard: Arc<Mutex<Heard>>) {
    let http = client();
    loop {
        read_on(&http, &url, &heard).await;
        tokio::time::sleep(READ).await;
    }
}

/// Everything after the oldest request that had not ended when it was last read.
async fn read_on(http: &reqwest::Client, url: &str, heard: &Mutex<Heard>) {
    let mut since = {
        let heard = heard.lock().unwrap();
        let open = heard.entries.values().find(|entry| entry.outcome == Outcome::InFlight);
        open.map_or(heard.entries.last_key_value().map_or(0, |(n, _)| *n), |entry| entry.n - 1)
    };
    loop {
        // A busy machine: the next look will do.
        let Ok(log) = get::<Log>(http, &format!("{url}/_sim/log?since={since}&limit=1000")).await else { return };
        let last = log.entries.len() < 1_000;
        since = log.next_since;
        let mut heard = heard.lock().unwrap();
        heard.forgotten += log.lost;
        heard.entries.extend(log.entries.into_iter().map(|entry| (entry.n, entry)));
        if last {
            return;
        }
    }
}
