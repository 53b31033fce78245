//! What the tests of the whole service share: a place with a database and a provider, and ways to await what happens.

use reprieve::agent::accept::{self, Directory};
use reprieve::app::Service;
use reprieve::clock::Clock;
use reprieve::config::Config;
use reprieve::sim::{Scenario, Sim, SimOptions};
use reprieve::store::sqlite::{OpenOptions, Sqlite};
use reprieve::store::{JobId, JobRow, JobState, Query, Store, Submitted, TurnView};
use reprieve::worker::{Live, LiveEvent, Stop};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Nothing in these tests takes this long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bench {
    /// Holds the place on disk; deleted with the bench.
    _dir: TempDir,
    pub sim: Sim,
    pub config: Config,
    pub store: Sqlite,
    pub stop: Stop,
    /// What was said live, per kind of event.
    pub live: Arc<Mutex<Vec<(JobId, String)>>>,
    tasks: Vec<JoinHandle<()>>,
}

/// A configuration whose one provider is the simulator, speaking `OpenAI`'s dialect.
pub fn config_text(dir: &Path, sim_url: &str, more: &str) -> String {
    format!(
        "database = \"sqlite://{}/reprieve.db\"\n\
         [server]\nbind = \"127.0.0.1:0\"\n\
         [providers.sim]\nadapter = \"openai\"\nendpoint = \"{sim_url}/v1/\"\napi_key = {{ file = \"{}/key\" }}\n\
         identity = \"sim.example\"\naccount = \"main\"\n{more}",
        dir.display(),
        dir.display(),
    )
}

pub fn load(dir: &Path, text: &str) -> Config {
    std::fs::write(dir.join("key"), "sim-main").unwrap();
    let file = dir.join("reprieve.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(Some(&file), &[]).unwrap().config
}

impl Bench {
    pub async fn start(scenario: &str, more: &str) -> Self {
        Self::start_at(scenario, more, Clock::system()).await
    }

    pub async fn start_at(scenario: &str, more: &str, clock: Clock) -> Self {
        let mut bench = Self::idle_at(scenario, more, clock).await;
        bench.work().await;
        bench
    }

    /// Everything but a worker.
    pub async fn idle_at(scenario: &str, more: &str, clock: Clock) -> Self {
        let dir = TempDir::new().unwrap();
        let scenario = Scenario::parse(&format!("name = \"test\"\n{scenario}"), "test.toml").unwrap();
        let options = SimOptions { clock: clock.clone(), ..SimOptions::default() };
        let sim = Sim::start(scenario, options).await.unwrap();
        let config = load(dir.path(), &config_text(dir.path(), &sim.url(), more));
        let store = Sqlite::open(&config.database, clock, OpenOptions::default()).await.unwrap();
        Self { _dir: dir, sim, config, store, stop: Stop::default(), live: Arc::default(), tasks: Vec::new() }
    }

    /// Starts a worker and a scheduler.
    pub async fn work(&mut self) {
        let heard = Arc::clone(&self.live);
        let live = move |job: JobId, event: LiveEvent<'_>| {
            let line = match event {
                LiveEvent::Text(text) => format!("text {text}"),
                LiveEvent::Retry { wait_ms, .. } => format!("retry {wait_ms}"),
                LiveEvent::Deferred { until_ms, .. } => format!("deferred {until_ms}"),
                LiveEvent::TurnEnded => "ended".into(),
            };
            heard.lock().unwrap().push((job, line));
        };
        self.work_as(&self.config.clone(), Arc::new(live)).await;
    }

    /// Starts one more, with a configuration of its own.
    pub async fn work_as(&mut self, config: &Config, live: Live) {
        let service = Service::build(config, self.store.clone(), Some(live)).await.unwrap();
        let (worker, scheduler, stop) = (service.clone(), service, self.stop.clone());
        let scheduler_stop = stop.drain.clone();
        self.tasks.push(tokio::spawn(async move { worker.work(stop).await }));
        self.tasks.push(tokio::spawn(async move { scheduler.schedule(scheduler_stop).await.unwrap() }));
    }

    /// Stops the worker and waits until it has drained.
    pub async fn stop(&mut self) {
        self.stop.drain.cancel();
        for task in self.tasks.drain(..) {
            tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
        }
        self.stop = Stop::default();
    }

    pub fn now_ms(&self) -> i64 {
        self.store.clock().now_ms()
    }

    /// Submits a job of the given members for the simulator.
    pub async fn submit(&self, members: Value) -> JobId {
        let mut spec = json!({"model": "m", "provider": "sim", "input": "What is at the quay?"});
        if members.get("raw").is_some() || members.get("messages").is_some() {
            spec.as_object_mut().unwrap().remove("input");
        }
        for (name, value) in members.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let directory = Directory::of(&self.config);
        let job = accept::accept(&spec.to_string(), &directory, self.now_ms(), None).unwrap();
        match self.store.submit(vec![job]).await.unwrap()[0] {
            Submitted::Accepted(id) => id,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub async fn job(&self, id: JobId) -> JobRow {
        self.store.job(id).await.unwrap().unwrap()
    }

    pub async fn turns(&self, id: JobId) -> Vec<TurnView> {
        self.store.turns(id).await.unwrap()
    }

    /// Waits until the job is as asked.
    pub async fn until(&self, id: JobId, is: impl Fn(&JobRow) -> bool) -> JobRow {
        let mut changes = self.store.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let job = self.job(id).await;
                if is(&job) {
                    return job;
                }
                // The second arm is the store's own safety net: a change is a hint.
                drop(tokio::time::timeout(Duration::from_secs(1), changes.changed()).await);
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(job) => job,
            Err(_) => panic!("still {:?}", self.job(id).await),
        }
    }

    pub async fn ended(&self, id: JobId) -> JobRow {
        self.until(id, is_final).await
    }

    pub async fn succeeded(&self, id: JobId) -> JobRow {
        let job = self.ended(id).await;
        assert_eq!(job.state, JobState::Succeeded, "{:?}", job.error);
        job
    }

    pub fn query(&self) -> Query {
        Query { limit: 1_000, now_ms: self.now_ms(), ..Query::default() }
    }
}

pub fn is_final(job: &JobRow) -> bool {
    matches!(job.state, JobState::Succeeded | JobState::Failed | JobState::Cancelled)
}

/// The text of a job's result document.
pub fn text(job: &JobRow) -> String {
    let result: Value = serde_json::from_str(job.result.as_deref().unwrap()).unwrap();
    result["text"].as_str().unwrap().to_owned()
}

/// A job's error document.
pub fn error(job: &JobRow) -> Value {
    serde_json::from_str(job.error.as_deref().unwrap()).unwrap()
}
