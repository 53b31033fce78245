//! What is done to the fleet: the plan, drawn from the seed before anything starts, and the log of what was done.

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// SIGKILL; restarted at once.
    Kill,
    /// SIGSTOP past the lease, then SIGCONT.
    Stop,
    /// No byte fits on the database's disk any more; then there is room again.
    DiskFull,
    /// The database server is ended in immediate mode and started again.
    Restart,
    /// What one worker and the database say to each other goes nowhere for longer than the lease; then a reset.
    HalfOpen,
    /// A worker's clock is wrong by an hour, from its first start to its end.
    WrongClock,
    /// Nobody's doing: the machine did not let this process run.
    Stall,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGSTOP past the lease",
            Self::DiskFull => "disk full",
            Self::Restart => "server restart, immediate",
            Self::HalfOpen => "half-open connection",
            Self::WrongClock => "clock wrong by an hour",
            Self::Stall => "machine stalled by itself",
        }
    }

    /// It hits everybody who uses the database.
    pub fn hits_all(self) -> bool {
        match self {
            Self::DiskFull | Self::Restart | Self::Stall => true,
            Self::Kill | Self::Stop | Self::HalfOpen | Self::WrongClock => false,
        }
    }
}

/// One fault that was done.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: Kind,
    /// The life of the process that it struck; `None`: everybody.
    pub life: Option<usize>,
    pub from_ms: i64,
    pub until_ms: i64,
}

impl Fault {
    pub fn overlaps(&self, from_ms: i64, until_ms: i64) -> bool {
        self.from_ms <= until_ms && self.until_ms >= from_ms
    }
}

/// What was done, in the order in which it was over; and what could not be done here.
#[derive(Debug, Default)]
pub struct FaultLog {
    done: Mutex<Vec<Fault>>,
    not_run: Mutex<BTreeMap<Kind, String>>,
}

impl FaultLog {
    pub fn add(&self, fault: Fault) {
        self.done.lock().unwrap().push(fault);
    }

    pub fn not_run(&self, kind: Kind, why: &str) {
        println!("NOT RUN: {}: {why}", kind.word());
        self.not_run.lock().unwrap().insert(kind, why.to_owned());
    }

    pub fn all(&self) -> Vec<Fault> {
        self.done.lock().unwrap().clone()
    }

    pub fn missing(&self) -> BTreeMap<Kind, String> {
        self.not_run.lock().unwrap().clone()
    }
}

/// A fault that is to be done, at an instant counted from the drill's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub at_ms: u64,
    pub deed: Deed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Stop { slot: usize, for_ms: u64 },
    FillDisk { for_ms: u64 },
    Restart,
    HalfOpen { for_ms: u64 },
}

/// The kills of a drill: instant and slot. One every 0.2 to 2 s.
pub fn kills(seed: u64, slots: usize, until_ms: u64) -> Vec<(u64, usize)> {
    let mut dice = Dice::new(seed ^ 0x6b69_6c6c);
    let mut at_ms = 500;
    let mut planned = Vec::new();
    loop {
        at_ms += dice.roll(200, 2_000);
        if at_ms >= until_ms {
            return planned;
        }
        planned.push((at_ms, dice.pick(slots)));
    }
}

/// What a place can have done to it, besides kills and stops.
#[derive(Clone, Copy, Debug)]
pub struct Can {
    pub fill_disk: bool,
    /// It is a server: it can be restarted, and reached through a proxy.
    pub server: bool,
}

/// Everything but the kills, one after the other. `repeats`: how often the whole round is gone through; restarts are five
/// in all, as long as they fit.
pub fn plan(seed: u64, workers: usize, lease_ms: u64, until_ms: u64, can: Can) -> Vec<Planned> {
    let mut dice = Dice::new(seed ^ 0x706c_616e);
    let mut deeds = Vec::new();
    let past_lease = |dice: &mut Dice| lease_ms + dice.roll(700, 1_700);
    let rounds = (until_ms / 40_000).max(1);
    for round in 0..rounds {
        deeds.push(Deed::Stop { slot: dice.pick(workers), for_ms: past_lease(&mut dice) });
        if can.server {
            deeds.push(Deed::Restart);
            deeds.push(Deed::HalfOpen { for_ms: past_lease(&mut dice) });
            if round == 0 {
                deeds.extend([Deed::Restart, Deed::Restart]);
            }
        }
        if can.fill_disk {
            deeds.push(Deed::FillDisk { for_ms: dice.roll(1_000, 2_500) });
        }
        if can.server {
            deeds.push(Deed::Restart);
            if round == 0 {
                deeds.push(Deed::Restart);
            }
        } else {
            deeds.push(Deed::Stop { slot: dice.pick(workers), for_ms: past_lease(&mut dice) });
        }
    }
    let gap_ms = until_ms / (deeds.len() as u64 + 1);
    let at = |(n, deed)| Planned { at_ms: 1_500 + gap_ms * n as u64 + dice.roll(0, gap_ms / 3 + 1), deed };
    deeds.into_iter().enumerate().map(at).collect()
}

#[test]
fn one_seed_is_one_plan_and_each_kind_is_in_it() {
    for can in [Can { fill_disk: true, server: false }, Can { fill_disk: true, server: true }] {
        let planned = plan(7, 4, 3_000, 24_000, can);
        assert_eq!(planned, plan(7, 4, 3_000, 24_000, can));
        assert_ne!(planned, plan(8, 4, 3_000, 24_000, can));
        let any = |is: fn(&Deed) -> bool| planned.iter().filter(|planned| is(&planned.deed)).count();
        assert!(any(|deed| matches!(deed, Deed::Stop { .. })) >= 1);
        assert_eq!(any(|deed| matches!(deed, Deed::FillDisk { .. })), 1);
        assert_eq!(any(|deed| matches!(deed, Deed::Restart)), if can.server { 5 } else { 0 });
        assert_eq!(any(|deed| matches!(deed, Deed::HalfOpen { .. })), usize::from(can.server));
    }
    let kills = kills(7, 5, 24_000);
    assert!((11..120).contains(&kills.len()), "{}", kills.len());
}
