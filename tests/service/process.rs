//! The binary under test as a process of its own: started, listened to, signalled, awaited.

use crate::bench::{PATIENCE, config_text};
use reprieve::clock::Clock;
use reprieve::config::Config;
use reprieve::sim::{Scenario, Sim, SimOptions};
use reprieve::store::sqlite::{OpenOptions, Sqlite};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// A directory with a database and a configuration, and the simulator that the configuration names.
pub struct Place {
    pub dir: TempDir,
    pub sim: Sim,
    pub config: Config,
}

impl Place {
    pub async fn new(scenario: &str, more: &str) -> Self {
        Self::at(tempfile::tempdir().unwrap(), scenario, more).await
    }

    pub async fn at(dir: TempDir, scenario: &str, more: &str) -> Self {
        let scenario = Scenario::parse(&format!("name = \"test\"\n{scenario}"), "test.toml").unwrap();
        let sim = Sim::start(scenario, SimOptions::default()).await.unwrap();
        let config = crate::bench::load(dir.path(), &config_text(dir.path(), &sim.url(), more));
        Self { dir, sim, config }
    }

    /// The tests' own handle to the database.
    pub async fn store(&self) -> Sqlite {
        Sqlite::open(&self.config.database, Clock::system(), OpenOptions::default()).await.unwrap()
    }

    /// Starts `reprieve … arguments`, and waits until it says that it is there.
    pub async fn start(&self, arguments: &[&str]) -> Process {
        let process = self.spawn(arguments, &[]);
        process.says_first().await;
        process
    }

    /// Starts it, and waits for nothing.
    pub fn spawn(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Process {
        self.run(Command::new(env!("CARGO_BIN_EXE_reprieve")), arguments, environment)
    }

    /// Starts it with at most so many open files, and waits for nothing.
    pub fn spawn_with_files(&self, files: u32, arguments: &[&str]) -> Process {
        let mut shell = Command::new("/bin/sh");
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        shell.args(["-c", &limited, env!("CARGO_BIN_EXE_reprieve")]);
        self.run(shell, arguments, &[])
    }

    fn run(&self, mut command: Command, arguments: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut child = command
            .arg("--config")
            .arg(self.dir.path().join("reprieve.toml"))
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let out = heard(child.stdout.take().unwrap());
        let log = heard(child.stderr.take().unwrap());
        Process { child, out, log }
    }
}

/// Collects what comes, line by line.
fn heard(from: impl AsyncRead + Unpin + Send + 'static) -> watch::Receiver<String> {
    let (said, hear) = watch::channel(String::new());
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            said.send_modify(|all| {
                all.push_str(&line);
                all.push('\n');
            });
        }
    });
    hear
}

pub struct Process {
    child: Child,
    out: watch::Receiver<String>,
    log: watch::Receiver<String>,
}

impl Process {
    /// Everything logged so far.
    pub fn log(&self) -> String {
        self.log.borrow().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Waits until the log has these words.
    pub async fn logs(&self, words: &str) {
        let mut log = self.log.clone();
        let seen = tokio::time::timeout(PATIENCE, log.wait_for(|all| all.contains(words))).await;
        assert!(matches!(seen, Ok(Ok(_))), "`{words}` was never logged:\n{}", self.log());
    }

    /// Waits for the line in which a process says what it does.
    pub async fn says_first(&self) -> String {
        let mut out = self.out.clone();
        let seen = tokio::time::timeout(PATIENCE, out.wait_for(|all| all.contains('\n'))).await;
        match seen {
            Ok(Ok(all)) => all.clone(),
            _ => panic!("it said nothing:\n{}", self.log()),
        }
    }

    /// Where a `serve` serves.
    pub fn url(&self) -> String {
        let out = self.out.borrow();
        out.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned()
    }

    /// `TERM`, `STOP`, `CONT`, …
    pub fn signal(&self, name: &str) {
        let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid())]).status();
        assert!(sent.unwrap().success(), "SIG{name} could not be sent");
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for its end: its exit code, and all it logged.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let Ok(ended) = tokio::time::timeout(PATIENCE, self.child.wait()).await else {
            panic!("it does not end:\n{}", self.log());
        };
        // The pipe ends with the process.
        while self.log.changed().await.is_ok() {}
        (ended.unwrap().code(), self.log())
    }

    /// SIGTERM, and waits for an orderly end.
    pub async fn stop(self) -> String {
        self.signal("TERM");
        let (code, log) = self.ended().await;
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

/// Waits until `is` answers something, asking every few milliseconds: for what gives no signal across processes.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut is: impl FnMut() -> F) -> T {
    let waiting = async {
        loop {
            if let Some(found) = is().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what} never came"))
}
