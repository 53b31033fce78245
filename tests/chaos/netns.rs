//! Two network namespaces with one wire between them: Postgres and the simulator in one, a worker in the other. The wire is
//! cut for longer than the lease and healed: what the worker had in hand is done by another, and what it writes when it is
//! back is void.

use crate::facts::Facts;
use crate::fleet::{Register, Role, Slot, entered, signal};
use crate::ledger::Ledger;
use crate::place::{configure, migrate_at};
use crate::postgres::Server;
use reprieve::sim::Stats;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::Instant;

/// Addresses for tests of networks (RFC 2544), on an interface that exists in these namespaces only.
const HOME: &str = "198.18.7.1";
const AWAY: &str = "198.18.7.2";
const LEASE_MS: u64 = 3_000;
const JOBS: usize = 120;
/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// A transaction that the cut left open keeps its locks until the wire is whole: the others may have to wait for that.
const CUT_AT_MOST: Duration = Duration::from_secs(12);

const SCENARIO: &str = "name = \"cut\"\n[answer]\nlatency = \"400ms\"\nchunk_latency = \"10ms\"\n\
    [[rules]]\nname = \"slow\"\nevery = 8\nlatency = \"2s\"\nanswer = {}\n";

/// The pair, gone with this value.
#[derive(Debug)]
pub struct Namespaces {
    ip: PathBuf,
    home: String,
    away: String,
}

impl Namespaces {
    /// Why they cannot be made: the error.
    pub fn make() -> Result<Self, String> {
        let places = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"];
        let ip = places.iter().map(PathBuf::from).find(|path| path.exists()).ok_or("`ip` is not installed")?;
        let name = |side: &str| format!("chaos-{}-{side}", std::process::id());
        let both = Self { ip, home: name("home"), away: name("away") };
        let (home, away) = (both.home.as_str(), both.away.as_str());
        // Whatever fails, what was made goes with `both`.
        both.ip(&["netns", "add", home])?;
        both.ip(&["netns", "add", away])?;
        both.ip(&["link", "add", "wire", "netns", home, "type", "veth", "peer", "name", "wire", "netns", away])?;
        for (namespace, address) in [(home, HOME), (away, AWAY)] {
            both.ip(&["-n", namespace, "addr", "add", &format!("{address}/30"), "dev", "wire"])?;
            both.ip(&["-n", namespace, "link", "set", "lo", "up"])?;
            both.ip(&["-n", namespace, "link", "set", "wire", "up"])?;
        }
        Ok(both)
    }

    fn ip(&self, arguments: &[&str]) -> Result<(), String> {
        match Command::new(&self.ip).args(arguments).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What stands in front of a command that is to run there.
    fn enter(&self, namespace: &str) -> Vec<String> {
        [self.ip.to_str().unwrap(), "netns", "exec", namespace].map(str::to_owned).into()
    }

    fn wire(&self, state: &str) {
        self.ip(&["-n", &self.home, "link", "set", "wire", state]).unwrap();
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in [&self.home, &self.away] {
            let _ = self.ip(&["netns", "del", namespace]);
        }
    }
}

pub async fn run(namespaces: &Namespaces) {
    let dir = tempfile::Builder::new().prefix("chaos-").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (data, beside) = (dir.path().join("data"), dir.path().join("beside"));
    for made in [&data, &beside] {
        std::fs::create_dir(made).unwrap();
    }
    let home = namespaces.enter(&namespaces.home);
    let server = tokio::task::block_in_place(|| Server::start(&data, &beside, HOME, &home));
    // Sockets in the file system are in no namespace of the network.
    let ledger = Ledger::Postgres(server.socket_url(&beside));
    let mut sim = sim(&home, dir.path()).await;
    let config = configure(dir.path(), "reprieve", &Server::url(HOME, server.port), &sim.url, LEASE_MS);
    migrate_at(&home, dir.path(), &config).await;

    let register = Arc::<Register>::default();
    let start = |name: &str, enter: &[String]| {
        let arguments = ["--config", config.to_str().unwrap(), "worker"].map(str::to_owned).into();
        let role = Role { name: name.to_owned(), enter: enter.to_vec(), arguments, environment: Vec::new() };
        Slot::start(role, dir.path(), Arc::clone(&register))
    };
    let far = start("the far worker", &namespaces.enter(&namespaces.away));
    submit(&home, dir.path(), &config).await;
    until("turns in the far worker's hand", || async { ledger.in_hand().await.is_ok_and(|rows| rows.len() >= 4) })
        .await;

    namespaces.wire("down");
    let cut = Instant::now();
    let (_, life) = far.life().await;
    let before = life.claims();
    let near = start("the near worker", &home);
    while lost(&ledger).await == 0 && cut.elapsed() < CUT_AT_MOST {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let taken_back = (lost(&ledger).await, cut.elapsed());
    tokio::time::sleep_until(cut + Duration::from_millis(LEASE_MS + 2_000)).await;
    namespaces.wire("up");
    let cut_for = cut.elapsed();

    until("every job's end", || async { ledger.left().await.is_ok_and(|(live, _)| live == 0) }).await;
    let drained = cut.elapsed().saturating_sub(cut_for);
    assert!(life.claims_anew(before, PATIENCE).await, "the far worker did not begin again:\n{}", life.tail());
    for worker in [far, near] {
        let (name, code) = worker.end().await;
        assert_eq!(code, Some(0), "{name}");
    }
    let stats = sim.end().await;
    let facts = Facts::of(&ledger).await;
    assert_eq!(ledger.contradictions().await.unwrap(), Vec::<String>::new());
    assert_eq!(register.panics(), Vec::<String>::new());
    let mut completed: HashMap<&str, u32> = HashMap::new();
    for record in &facts.records {
        assert!(["completed", "lost", "requeued"].contains(&record.outcome.as_str()), "{record:?}");
        *completed.entry(&record.job).or_default() += u32::from(record.outcome == "completed");
    }
    assert_eq!(facts.jobs.len(), JOBS);
    for (id, job) in &facts.jobs {
        assert_eq!((job.state.as_str(), completed.get(id.as_str())), ("succeeded", Some(&1)), "{id}");
    }
    let lost = facts.records.iter().filter(|record| record.outcome == "lost").count();
    assert!(lost > 0, "the cut took nothing from anybody");
    assert_eq!(facts.by_zombies, 0);
    let counts = stats.totals;
    assert!(counts.completed <= (JOBS + lost) as u64, "{counts:?}");
    assert_eq!((counts.early, counts.doomed), (0, 0));
    println!(
        "cut wire: {JOBS} jobs · cut for {:.1} s, first {} turns taken back after {:.1} s · {lost} lost, {} void ends · {} sends, \
         {} completed, {} abandoned · all ended {:.1} s after the wire was whole",
        cut_for.as_secs_f64(),
        taken_back.0,
        taken_back.1.as_secs_f64(),
        register.void(),
        counts.received,
        counts.completed,
        counts.abandoned,
        drained.as_secs_f64()
    );
}

async fn lost(ledger: &Ledger) -> usize {
    let rows = ledger.rows("SELECT {id:job_id} FROM turn_records WHERE outcome = 'lost'").await;
    rows.map_or(0, |rows| rows.len())
}

async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let started = Instant::now();
    while !is().await {
        assert!(started.elapsed() < PATIENCE, "{what} never came");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn submit(enter: &[String], dir: &Path, config: &Path) {
    let file = dir.join("jobs.jsonl");
    let line = |n| {
        format!(
            "{{\"model\":\"m-{}\",\"provider\":\"sim\",\"input\":\"Question {n}?\",\"labels\":{{\"n\":\"{n}\"}}}}\n",
            n % 5
        )
    };
    std::fs::write(&file, (0..JOBS).map(line).collect::<String>()).unwrap();
    let mut command = entered(enter, dir);
    let submitted = command.arg("--config").arg(config).arg("submit").arg(&file).output().await.unwrap();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
}

/// The simulator, which nobody outside of its namespace can ask: it tells its figures when it ends.
struct Sim {
    child: tokio::process::Child,
    url: String,
}

async fn sim(enter: &[String], dir: &Path) -> Sim {
    let scenario = dir.join("scenario.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let mut command = entered(enter, dir);
    command.args(["--json", "sim", "--host", HOME, "--port", "0", "--scenario"]).arg(&scenario);
    let mut child = command.spawn().unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next_line().await.unwrap().unwrap_or_default();
    let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) else {
        panic!("the simulator did not start: {line}")
    };
    let url = url.to_owned();
    Sim { child, url }
}

impl Sim {
    async fn end(&mut self) -> Stats {
        signal(self.child.id().unwrap(), "TERM");
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
        self.child.wait().await.unwrap();
        serde_json::from_str(&said).unwrap()
    }
}
