//! Looks at the database all the while: whose hand each turn is in, and whether it contradicts itself. And at this
//! machine: whether it let us run.

use crate::faults::{Fault, FaultLog, Kind};
use crate::ledger::Ledger;
use crate::now_ms;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often hands are looked at: a turn that is lost stays in its hand until the lease has run out, several times as long.
const LOOK: Duration = Duration::from_millis(300);
/// Every so many looks it is asked for contradictions.
const THOROUGH: u32 = 16;
/// A sleep that takes so much longer than it should says that processes did not get to run.
const STALL_MS: i64 = 1_000;

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// The worker id (32 digits) that had a job's execution in its hand.
    pub hands: Mutex<HashMap<(String, i64), String>>,
    pub contradictions: Mutex<BTreeSet<String>>,
    /// Looks that had an answer.
    pub looks: Mutex<u64>,
}

pub struct Watch {
    pub seen: Arc<Seen>,
    tasks: [JoinHandle<()>; 2],
}

impl Watch {
    pub fn start(ledger: Ledger, log: Arc<FaultLog>) -> Self {
        let seen = Arc::<Seen>::default();
        let looking = tokio::spawn(look(ledger, Arc::clone(&seen)));
        let stalls = tokio::spawn(stalls(log));
        Self { seen, tasks: [looking, stalls] }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn look(ledger: Ledger, seen: Arc<Seen>) {
    let mut nth = 0_u32;
    loop {
        tokio::time::sleep(LOOK).await;
        nth = nth.wrapping_add(1);
        // A database that is away answers the next look.
        if let Ok(rows) = ledger.in_hand().await {
            let mut hands = seen.hands.lock().unwrap();
            for row in rows {
                hands.insert((row[0].clone(), row[1].parse().unwrap()), row[2].clone());
            }
            *seen.looks.lock().unwrap() += 1;
        }
        if nth.is_multiple_of(THOROUGH)
            && let Ok(found) = ledger.contradictions().await
        {
            seen.contradictions.lock().unwrap().extend(found);
        }
    }
}

async fn stalls(log: Arc<FaultLog>) {
    loop {
        let from_ms = now_ms();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let until_ms = now_ms();
        if until_ms - from_ms > STALL_MS + 100 {
            log.add(Fault { kind: Kind::Stall, life: None, from_ms, until_ms });
        }
    }
}
