//! The processes under fire: each slot has a supervisor that starts the binary again whenever it ends, and does to it what
//! it is told.

use crate::now_ms;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// An orderly end takes no longer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A process that ended by itself (its database is away) is started again after this long.
const AGAIN: Duration = Duration::from_millis(100);
/// What a process says when a fault has struck it.
const FELT: [&str; 5] =
    ["disk is full", "is locked", "cannot be reached", "the lease ran out", "the lease was taken back"];
/// Lines of trouble that are kept, the latest.
const TROUBLES: usize = 12;
/// Lines of a process's log that are kept, its latest.
const TAIL: usize = 60;

/// One process from its start to its end.
#[derive(Debug)]
pub struct Life {
    pub pid: u32,
    /// What it said first on stdout.
    pub greeting: watch::Receiver<Option<String>>,
    heard: watch::Receiver<Heard>,
}

/// What its log said.
#[derive(Debug, Default)]
struct Heard {
    /// Under how many ids it claimed.
    claims: usize,
    /// Ends that it found void.
    void: u64,
    panics: Vec<String>,
    /// Lines with each of [`FELT`].
    felt: [u64; FELT.len()],
    /// What it said of its lease and of a database that did not do as it was told.
    troubles: VecDeque<String>,
    tail: VecDeque<String>,
}

/// Who is who, over all lives.
#[derive(Debug, Default)]
pub struct Register {
    lives: Mutex<Vec<Arc<Life>>>,
    workers: Mutex<HashMap<String, usize>>,
    /// Ends that nobody asked for, with the last words.
    pub ended_by_itself: Mutex<Vec<(String, Option<i32>, String)>>,
}

impl Register {
    /// The life that claimed under this worker id.
    pub fn life_of(&self, worker: &str) -> Option<usize> {
        self.workers.lock().unwrap().get(worker).copied()
    }

    /// What a life said of its lease and its database.
    pub fn troubles(&self, life: usize) -> String {
        let lives = self.lives.lock().unwrap();
        let Some(life) = lives.get(life) else { return String::new() };
        life.heard.borrow().troubles.iter().fold(String::new(), |all, line| all + "\n        " + line)
    }

    pub fn lives(&self) -> usize {
        self.lives.lock().unwrap().len()
    }

    pub fn void(&self) -> u64 {
        self.lives.lock().unwrap().iter().map(|life| life.heard.borrow().void).sum()
    }

    /// How often processes said of the faults that they met them.
    pub fn felt(&self) -> String {
        let mut sums = [0; FELT.len()];
        for life in self.lives.lock().unwrap().iter() {
            for (sum, n) in sums.iter_mut().zip(life.heard.borrow().felt) {
                *sum += n;
            }
        }
        FELT.iter().zip(sums).map(|(words, n)| format!("{n} × `{words}`")).collect::<Vec<_>>().join(", ")
    }

    pub fn panics(&self) -> Vec<String> {
        self.lives.lock().unwrap().iter().flat_map(|life| life.heard.borrow().panics.clone()).collect()
    }
}

impl Life {
    pub fn tail(&self) -> String {
        self.heard.borrow().tail.iter().fold(String::new(), |all, line| all + line + "\n")
    }

    /// Under how many worker ids it has claimed so far.
    pub fn claims(&self) -> usize {
        self.heard.borrow().claims
    }

    /// Waits until it claims under one id more than `before`. `false`: it did not, in time.
    pub async fn claims_anew(&self, before: usize, within: Duration) -> bool {
        let mut heard = self.heard.clone();
        let seen = tokio::time::timeout(within, heard.wait_for(|heard| heard.claims > before)).await;
        matches!(seen, Ok(Ok(_)))
    }
}

enum Order {
    /// SIGKILL, and start it again. Answers the life that ended.
    Kill(oneshot::Sender<usize>),
    /// SIGTERM, and leave it ended. Answers its exit code.
    End(oneshot::Sender<Option<i32>>),
}

/// How a slot's process is started.
#[derive(Clone, Debug)]
pub struct Role {
    pub name: String,
    /// What stands in front of the command (`ip netns exec …`), or nothing.
    pub enter: Vec<String>,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// A place in the fleet, in which one process lives after the other.
#[derive(Debug)]
pub struct Slot {
    pub name: String,
    orders: mpsc::Sender<Order>,
    life: watch::Receiver<(usize, Option<Arc<Life>>)>,
    /// Something else is being done to it: it is not killed meanwhile.
    pub spared: AtomicBool,
    pub restarts: Arc<AtomicUsize>,
    supervisor: JoinHandle<()>,
}

impl Slot {
    pub fn start(role: Role, dir: &Path, register: Arc<Register>) -> Self {
        let (orders, queue) = mpsc::channel(1);
        let (living, life) = watch::channel((0, None));
        let restarts = Arc::new(AtomicUsize::new(0));
        let name = role.name.clone();
        let dir = dir.to_owned();
        let supervisor = {
            let restarts = Arc::clone(&restarts);
            tokio::spawn(async move { supervise(role, &dir, register, queue, living, restarts).await })
        };
        Self { name, orders, life, spared: AtomicBool::new(false), restarts, supervisor }
    }

    /// The life that lives there now.
    pub async fn life(&self) -> (usize, Arc<Life>) {
        let mut life = self.life.clone();
        let seen = life.wait_for(|(_, life)| life.is_some()).await.unwrap();
        (seen.0, Arc::clone(seen.1.as_ref().unwrap()))
    }

    /// Kills and restarts what lives there; the life that ended. It may have ended by itself a moment ago: the next then.
    pub async fn kill(&self) -> usize {
        let (reply, answer) = oneshot::channel();
        self.orders.send(Order::Kill(reply)).await.unwrap();
        answer.await.unwrap()
    }

    /// An orderly end: the exit code.
    pub async fn end(self) -> (String, Option<i32>) {
        let (reply, answer) = oneshot::channel();
        self.orders.send(Order::End(reply)).await.unwrap();
        let code = answer.await.unwrap();
        self.supervisor.await.unwrap();
        (self.name, code)
    }
}

async fn supervise(
    role: Role,
    dir: &Path,
    register: Arc<Register>,
    mut orders: mpsc::Receiver<Order>,
    living: watch::Sender<(usize, Option<Arc<Life>>)>,
    restarts: Arc<AtomicUsize>,
) {
    loop {
        let (number, life, mut child) = born(&role, dir, &register);
        living.send_replace((number, Some(Arc::clone(&life))));
        tokio::select! {
            ended = child.wait() => {
                let code = ended.unwrap().code();
                register.ended_by_itself.lock().unwrap().push((role.name.clone(), code, life.tail()));
                tokio::time::sleep(AGAIN).await;
            }
            order = orders.recv() => match order {
                Some(Order::Kill(reply)) => {
                    child.kill().await.unwrap();
                    let _ = reply.send(number);
                }
                Some(Order::End(reply)) => {
                    signal(life.pid, "TERM");
                    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
                    let code = ended.unwrap_or_else(|_| panic!("{} does not end:\n{}", role.name, life.tail()));
                    let _ = reply.send(code.unwrap().code());
                    return;
                }
                None => return,
            },
        }
        restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// `reprieve`, with nothing of our own environment.
pub fn reprieve(dir: &Path) -> Command {
    entered(&[], dir)
}

/// The same behind `enter`.
pub fn entered(enter: &[String], dir: &Path) -> Command {
    let own = env!("CARGO_BIN_EXE_reprieve").to_owned();
    let words: Vec<&String> = enter.iter().chain([&own]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command.current_dir(dir).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

fn born(role: &Role, dir: &Path, register: &Arc<Register>) -> (usize, Arc<Life>, Child) {
    let mut command = entered(&role.enter, dir);
    command.args(&role.arguments).envs(role.environment.iter().cloned());
    command.env("REPRIEVE_LOG", "warn,reprieve::worker=info");
    let mut child = command.spawn().unwrap();
    let mut lives = register.lives.lock().unwrap();
    let number = lives.len();
    let greeting = greeting(child.stdout.take().unwrap());
    let heard = listen(child.stderr.take().unwrap(), number, Arc::clone(register));
    let life = Arc::new(Life { pid: child.id().unwrap(), greeting, heard });
    lives.push(Arc::clone(&life));
    (number, life, child)
}

/// The first line; what follows is read and dropped.
fn greeting(from: impl AsyncRead + Unpin + Send + 'static) -> watch::Receiver<Option<String>> {
    let (said, hear) = watch::channel(None);
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            said.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(line);
                is_first
            });
        }
    });
    hear
}

fn listen(
    from: impl AsyncRead + Unpin + Send + 'static,
    number: usize,
    register: Arc<Register>,
) -> watch::Receiver<Heard> {
    let (said, hear) = watch::channel(Heard::default());
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains("the worker claims")
                && let Some(id) = field(&line, "worker.id=")
            {
                register.workers.lock().unwrap().insert(id.replace('-', ""), number);
            }
            said.send_modify(|heard| heard.take(line));
        }
    });
    hear
}

impl Heard {
    fn take(&mut self, line: String) {
        self.claims += usize::from(line.contains("the worker claims"));
        if line.contains("ends of turns that had been taken back") {
            self.void += field(&line, "stale=").and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
        }
        for (n, words) in self.felt.iter_mut().zip(FELT) {
            *n += u64::from(line.contains(words));
        }
        if line.contains("panicked") {
            self.panics.push(line.clone());
        }
        if line.contains("lease") || line.contains("error=") {
            if self.troubles.len() == TROUBLES {
                self.troubles.pop_front();
            }
            self.troubles.push_back(line.clone());
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

/// The word behind `name` in a line of the log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split_whitespace().next()
}

/// `STOP`, `CONT`, … to a process that we started and have not yet seen end.
pub fn signal(pid: u32, name: &str) {
    // It may have ended a moment ago; whoever asked finds out by what does not happen.
    let _ = std::process::Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
}

/// Freezes a life for so long; when that began and ended.
pub async fn freeze(life: &Life, for_ms: u64) -> (i64, i64) {
    let from_ms = now_ms();
    signal(life.pid, "STOP");
    tokio::time::sleep(Duration::from_millis(for_ms)).await;
    let until_ms = now_ms();
    signal(life.pid, "CONT");
    (from_ms, until_ms)
}
