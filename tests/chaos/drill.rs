//! One drill from its plan to its verdict.

use crate::faults::{self, Deed, Fault, FaultLog, Kind};
use crate::fleet::{Life, Register, Role, Slot, freeze};
use crate::now_ms;
use crate::place::{Place, migrate};
use crate::postgres::Server;
use crate::provider::{HARSH, Provider};
use crate::submit::{Acknowledged, MANNERS, Submitter};
use crate::verdict::{self, Evidence};
use crate::watch::Watch;
use reprieve::clock::SKEW_VARIABLE;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// As short as a lease may be.
pub const LEASE_MS: u64 = 3_000;
/// The worker that reaches its server through the proxy.
const PROXIED: usize = 1;
/// Workers whose clocks are wrong, and by how much.
const WRONG_CLOCKS: [(usize, &str); 2] = [(2, "1h"), (3, "-1h")];
/// A thawed worker has noticed within this, whatever the machine is busy with.
const NOTICES: Duration = Duration::from_secs(20);
/// After the last fault something ends at least this often, or the drill hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub seconds: u64,
    pub jobs: usize,
    pub seed: u64,
    pub workers: usize,
}

impl Drill {
    /// The gate's short form, or what `scripts/chaos` asks for.
    pub fn asked_for(short_jobs: u64) -> Self {
        let number = |name: &str, short: u64| {
            std::env::var(name).map_or(short, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        Self {
            seconds: number("REPRIEVE_CHAOS_SECONDS", 24),
            jobs: usize::try_from(number("REPRIEVE_CHAOS_JOBS", short_jobs)).unwrap(),
            seed: number("REPRIEVE_CHAOS_SEED", 1),
            workers: usize::try_from(number("REPRIEVE_CHAOS_WORKERS", 4)).unwrap(),
        }
    }

    /// A disk that the drill's data fits on with room to spare.
    pub fn megabytes(self) -> u32 {
        160 + u32::try_from(self.jobs / 40).unwrap()
    }
}

/// Everything that faults are done to.
struct Field<'a> {
    place: &'a Place,
    slots: &'a [Slot],
    log: &'a FaultLog,
    zombies: std::sync::Mutex<Zombies>,
}

/// Workers that were frozen past their lease: those that noticed and began anew, and those that did not in time.
#[derive(Clone, Debug, Default)]
pub struct Zombies {
    pub began_anew: u64,
    pub unnoticed: Vec<String>,
}

pub async fn run(place: Place, drill: Drill) {
    let started = Instant::now();
    println!(
        "chaos drill: seed {} · {} jobs · {} s · {} workers",
        drill.seed, drill.jobs, drill.seconds, drill.workers
    );
    let provider = Provider::start(place.dir(), HARSH, drill.seed).await;
    let config = place.configure("reprieve", &place.database, &provider.url, LEASE_MS);
    let log = Arc::<FaultLog>::default();
    let register = Arc::<Register>::default();
    if place.server.is_some() {
        migrate(place.dir(), &config).await;
    }
    let through_proxy = place
        .proxy
        .as_ref()
        .map(|proxy| place.configure("proxied", &Server::url("127.0.0.1", proxy.port), &provider.url, LEASE_MS));
    let mut slots = Vec::new();
    for n in 0..drill.workers {
        let config = through_proxy.as_ref().filter(|_| n == PROXIED).unwrap_or(&config);
        let mut role = role(&format!("worker {n}"), config, &["worker"]);
        // On a file everybody's clock is the machine's; a server's clock is measured by each.
        if let Some((_, skew)) = WRONG_CLOCKS.iter().find(|(slot, _)| *slot == n && place.server.is_some()) {
            role.environment.push((SKEW_VARIABLE.to_owned(), (*skew).to_owned()));
            let (from_ms, until_ms) = (now_ms(), now_ms());
            log.add(Fault { kind: Kind::WrongClock, life: None, from_ms, until_ms });
        }
        slots.push(Slot::start(role, place.dir(), Arc::clone(&register)));
    }
    slots.push(Slot::start(role("front", &config, &["serve", "--no-worker"]), place.dir(), Arc::clone(&register)));
    let watch = Watch::start(place.ledger.clone(), Arc::clone(&log));
    let field = Field { place: &place, slots: &slots, log: &log, zombies: std::sync::Mutex::default() };
    if let Err(why) = &place.disk {
        log.not_run(Kind::DiskFull, &format!("a small file system cannot be mounted: {why}"));
    }

    if place.server.is_none() {
        log.not_run(Kind::WrongClock, "all processes go by this machine's clock");
    }

    let (known, (), ()) = tokio::join!(
        submissions(&place, drill, &config, &slots[drill.workers]),
        field.kill(drill, started),
        field.others(drill, started)
    );
    let last_fault = Instant::now();
    drained(&place, &slots).await;
    let drained_in = last_fault.elapsed();

    let zombies = field.zombies.lock().unwrap().clone();
    let restarts = slots.iter().map(|slot| slot.restarts.load(Ordering::Relaxed)).sum();
    let mut bad_ends = Vec::new();
    for slot in slots {
        let (name, code) = slot.end().await;
        if code != Some(0) {
            bad_ends.push(format!("{name} ended with {code:?}"));
        }
    }
    let answers = verdict::undisturbed(&provider.url, drill.seed, drill.jobs).await;
    let (stats, heard) = provider.end().await;
    let evidence = Evidence {
        drill,
        known,
        seen: Arc::clone(&watch.seen),
        register,
        faults: log.all(),
        not_run: log.missing(),
        zombies,
        restarts,
        bad_ends,
        answers,
        stats,
        heard,
        drained_in,
        took: started.elapsed(),
    };
    drop(watch);
    verdict::give(&place, evidence).await;
}

fn role(name: &str, config: &Path, arguments: &[&str]) -> Role {
    let config = config.to_str().unwrap();
    let arguments = ["--config", config].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
    Role { name: name.to_owned(), enter: Vec::new(), arguments, environment: Vec::new() }
}

/// All submitters at once, over the first two thirds of the drill.
async fn submissions(place: &Place, drill: Drill, config: &Path, front: &Slot) -> Vec<Acknowledged> {
    let percent_of_last: usize = MANNERS.iter().map(|(_, _, percent)| percent).sum();
    let (mut from, mut percent_so_far) = (0, 0);
    let mut share = |percent: usize| {
        // What the shares leave over is the last one's.
        let until =
            if percent_of_last == percent_so_far + percent { drill.jobs } else { from + drill.jobs * percent / 100 };
        percent_so_far += percent;
        std::mem::replace(&mut from, until)..until
    };
    let submitters = MANNERS.map(|(manner, at_once, percent)| Submitter {
        manner,
        seed: drill.seed,
        dir: place.dir(),
        config: config.to_owned(),
        front,
        jobs: share(percent).collect(),
        at_once,
        over: Duration::from_secs(drill.seconds) * 2 / 3,
    });
    futures::future::join_all(submitters.map(Submitter::run)).await
}

impl Field<'_> {
    async fn kill(&self, drill: Drill, started: Instant) {
        for (at_ms, slot) in faults::kills(drill.seed, self.slots.len(), drill.seconds * 1_000) {
            tokio::time::sleep_until(started + Duration::from_millis(at_ms)).await;
            let slot = &self.slots[slot];
            // Something is being done to it already; the next in line, then.
            let free = std::iter::once(slot).chain(self.slots).find(|slot| !slot.spared.load(Ordering::Relaxed));
            let Some(slot) = free else { continue };
            let from_ms = now_ms();
            let life = slot.kill().await;
            self.log.add(Fault { kind: Kind::Kill, life: Some(life), from_ms, until_ms: now_ms() });
        }
    }

    async fn others(&self, drill: Drill, started: Instant) {
        for planned in faults::plan(drill.seed, drill.workers, LEASE_MS, drill.seconds * 1_000, self.place.can()) {
            tokio::time::sleep_until(started + Duration::from_millis(planned.at_ms)).await;
            match planned.deed {
                Deed::Stop { slot, for_ms } => self.stop(&self.slots[slot], for_ms).await,
                Deed::FillDisk { for_ms } => self.fill(for_ms).await,
                Deed::Restart => self.restart(),
                Deed::HalfOpen { for_ms } => self.half_open(for_ms).await,
            }
        }
    }

    async fn stop(&self, slot: &Slot, for_ms: u64) {
        slot.spared.store(true, Ordering::Relaxed);
        let (number, life) = slot.life().await;
        // One that holds no lease has none to lose.
        if !life.claims_anew(0, NOTICES).await {
            slot.spared.store(false, Ordering::Relaxed);
            return;
        }
        let before = life.claims();
        let (from_ms, until_ms) = freeze(&life, for_ms).await;
        self.log.add(Fault { kind: Kind::Stop, life: Some(number), from_ms, until_ms });
        self.began_anew(slot, &life, before, for_ms).await;
        slot.spared.store(false, Ordering::Relaxed);
    }

    fn restart(&self) {
        let Some(server) = &self.place.server else { return };
        let from_ms = now_ms();
        let came_up = tokio::task::block_in_place(|| server.bounce());
        assert!(came_up, "the server does not start again");
        self.log.add(Fault { kind: Kind::Restart, life: None, from_ms, until_ms: now_ms() });
    }

    async fn half_open(&self, for_ms: u64) {
        let (Some(proxy), Some(slot)) = (&self.place.proxy, self.slots.get(PROXIED)) else { return };
        slot.spared.store(true, Ordering::Relaxed);
        let (number, life) = slot.life().await;
        let claims = life.claims_anew(0, NOTICES).await;
        let (before, from_ms) = (life.claims(), now_ms());
        proxy.swallow();
        tokio::time::sleep(Duration::from_millis(for_ms)).await;
        proxy.reset();
        self.log.add(Fault { kind: Kind::HalfOpen, life: Some(number), from_ms, until_ms: now_ms() });
        if claims {
            self.began_anew(slot, &life, before, for_ms).await;
        }
        slot.spared.store(false, Ordering::Relaxed);
    }

    /// Whether one whose lease must have lapsed begins again under a new id.
    async fn began_anew(&self, slot: &Slot, life: &Life, before: usize, for_ms: u64) {
        let noticed = life.claims_anew(before, NOTICES).await;
        let mut zombies = self.zombies.lock().unwrap();
        if noticed {
            zombies.began_anew += 1;
        } else {
            zombies.unnoticed.push(format!("{} after {for_ms} ms:\n{}", slot.name, life.tail()));
        }
    }

    async fn fill(&self, for_ms: u64) {
        let Ok(disk) = &self.place.disk else { return };
        let from_ms = now_ms();
        tokio::task::block_in_place(|| disk.fill());
        let until = Instant::now() + Duration::from_millis(for_ms);
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // What others have given back is taken as well.
            tokio::task::block_in_place(|| disk.fill());
        }
        disk.free();
        if let Some(server) = &self.place.server {
            tokio::task::block_in_place(|| server.up());
        }
        self.log.add(Fault { kind: Kind::DiskFull, life: None, from_ms, until_ms: now_ms() });
    }
}

/// Waits until no job is live any more.
async fn drained(place: &Place, slots: &[Slot]) {
    let mut ended_before = -1;
    let mut moved = Instant::now();
    loop {
        if let Ok((live, ended)) = place.ledger.left().await {
            if live == 0 {
                return;
            }
            if ended != ended_before {
                (ended_before, moved) = (ended, Instant::now());
            }
        }
        if moved.elapsed() > PATIENCE {
            let mut tails = String::new();
            for slot in slots {
                tails += &format!("-- {}\n{}", slot.name, slot.life().await.1.tail());
            }
            panic!("nothing ends any more: {:?}\n{tails}", place.ledger.left().await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
