//! The whole way of a turn: bulk and single submissions, raw turns through a local provider, resume lateness.
//!
//! usage: cargo bench --bench service -- [TURNS] (default 20,000). `LLM_URL`: a provider that answers at once; without it
//! the simulator answers. Prints one line a figure: `R name value`. Only ratios taken in one run count.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run ends")]

use reprieve::agent::accept::{Directory, accept};
use reprieve::app::Service;
use reprieve::clock::Clock;
use reprieve::config::Config;
use reprieve::sim::{Scenario, Sim, SimOptions};
use reprieve::store::sqlite::{OpenOptions, Sqlite};
use reprieve::store::{NewJob, Query, Store};
use reprieve::worker::Stop;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CALM: &str = "name = \"bench\"\n[answer]\nchars = 240\n";
/// As many scopes, each refused once with a reset of its own.
const SCOPES: usize = 200;

fn main() {
    let turns = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(20_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        throughput(turns).await;
        lateness().await;
    });
}

struct Place {
    _dir: TempDir,
    config: Config,
    store: Sqlite,
}

impl Place {
    async fn new(url: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let text = format!(
            "database = \"sqlite://{}/bench.db\"\n[providers.local]\nadapter = \"openai\"\nendpoint = \"{url}/v1/\"\n\
             api_key = {{ file = \"{}/key\" }}\nlimits = {{ max_in_flight = 64 }}\n",
            dir.path().display(),
            dir.path().display(),
        );
        std::fs::write(dir.path().join("key"), "sim-bench").unwrap();
        let file = dir.path().join("reprieve.toml");
        std::fs::write(&file, text).unwrap();
        let config = Config::load(Some(&file), &[]).unwrap().config;
        let store = Sqlite::open(&config.database, Clock::system(), OpenOptions::default()).await.unwrap();
        Self { _dir: dir, config, store }
    }

    fn raw(&self, n: usize) -> NewJob {
        let text = "lorem ipsum dolor ".repeat(48);
        let body = format!(
            r#"{{"model":"fake-gpt","n":{n},"messages":[{{"role":"system","content":"You are terse."}},{{"role":"user","content":"{text}"}}],"temperature":0.2,"max_tokens":256}}"#
        );
        self.accept(&format!(
            r#"{{"model":"fake-gpt","provider":"local","raw":{{"path":"chat/completions","body":{body}}}}}"#
        ))
    }

    fn accept(&self, spec: &str) -> NewJob {
        accept(spec, &Directory::of(&self.config), self.store.clock().now_ms(), None).unwrap()
    }

    async fn until_ended(&self, count: usize) {
        let mut changes = self.store.changes();
        loop {
            changes.borrow_and_update();
            let overview = self.store.overview(self.store.clock().now_ms()).await.unwrap();
            let ended = overview.succeeded + overview.failed + overview.cancelled;
            if usize::try_from(ended).unwrap() >= count {
                assert_eq!((overview.failed, overview.cancelled), (0, 0));
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn throughput(turns: usize) {
    let sim = Sim::start(Scenario::parse(CALM, "bench").unwrap(), SimOptions::default()).await.unwrap();
    let url = std::env::var("LLM_URL").unwrap_or_else(|_| sim.url());
    let place = Place::new(&url).await;

    let jobs: Vec<NewJob> = (0..turns).map(|n| place.raw(n)).collect();
    let started = Instant::now();
    for chunk in jobs.chunks(1_000) {
        place.store.submit(chunk.to_vec()).await.unwrap();
    }
    rate("enqueue_bulk_per_s", turns, started);

    let service = Service::build(&place.config, place.store.clone(), None).await.unwrap();
    let stop = Stop::default();
    let started = Instant::now();
    let worker = tokio::spawn({
        let stop = stop.clone();
        async move { service.work(stop).await }
    });
    place.until_ended(turns).await;
    rate("turns_per_s", turns, started);
    stop.drain.cancel();
    worker.await.unwrap();

    let singles = 4_000;
    let jobs: Vec<NewJob> = (0..singles).map(|n| place.raw(n)).collect();
    let started = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for mine in jobs.chunks(singles / 64) {
        let (store, mine) = (place.store.clone(), mine.to_vec());
        callers.spawn(async move {
            for job in mine {
                store.submit(vec![job]).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    rate("enqueue_single_per_s", singles, started);
}

/// How late turns resume: every scope is refused once, each with its own reset within 3 s.
async fn lateness() {
    let refused = "name = \"late\"\n[[rules]]\nname = \"refused\"\nfirst = 1\n\
        refuse = { kind = \"rate_limit_requests\", reset_in = \"2500ms\", reset = [\"retry-after-ms\"] }\n";
    let mut sims = Vec::new();
    let place = Place::new("http://127.0.0.1:9").await;
    // A rule counts per scenario, so each scope has a simulator, and so an entry, of its own.
    let mut config = place.config.clone();
    let template = config.providers["local"].clone();
    for n in 0..SCOPES {
        let sim = Sim::start(Scenario::parse(refused, "bench").unwrap(), SimOptions::default()).await.unwrap();
        let mut entry = template.clone();
        entry.name = format!("scope-{n}");
        entry.endpoint = format!("{}/v1/", sim.url());
        config.providers.insert(entry.name.clone(), entry);
        sims.push(sim);
    }
    let place = Place { config, ..place };
    let service = Service::build(&place.config, place.store.clone(), None).await.unwrap();
    let stop = Stop::default();
    let worker = tokio::spawn({
        let stop = stop.clone();
        async move { service.work(stop).await }
    });
    for n in 0..SCOPES {
        let spec = format!(r#"{{"model":"m","provider":"scope-{n}","input":"What is at the quay?"}}"#);
        place.store.submit(vec![place.accept(&spec)]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    place.until_ended(SCOPES).await;
    stop.drain.cancel();
    worker.await.unwrap();
    let query = Query { limit: 1_000, now_ms: place.store.clock().now_ms(), ..Query::default() };
    let mut late: Vec<i64> =
        place.store.resets(query).await.unwrap().items.iter().filter_map(|reset| reset.lateness_ms).collect();
    late.sort_unstable();
    assert_eq!(late.len(), SCOPES);
    println!("R resume_lateness_min_ms {}", late[0]);
    println!("R resume_lateness_p50_ms {}", late[late.len() / 2]);
    println!("R resume_lateness_p99_ms {}", late[late.len() * 99 / 100]);
    println!("R early_sends {}", sims.iter().map(|sim| sim.stats().totals.early).sum::<u64>());
}

fn rate(name: &str, count: usize, started: Instant) {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("R {name} {rate:.0}");
}
