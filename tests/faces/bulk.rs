//! Many jobs from one file: in constant memory, and repeatable however often the submission is killed.

use crate::rig::Place;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::process::Stdio;

/// An address at which nothing answers: nothing is sent in these tests.
const NOWHERE: &str = "http://127.0.0.1:9/v1/";
const LINES: usize = 5_000;
/// Jobs of one commit: how many may be stored and not yet acknowledged when a submission is killed.
const GROUP: usize = reprieve::api::bulk::GROUP;

fn lines(count: usize) -> String {
    (1..=count)
        .map(|n| json!({"model": "m", "provider": "sim", "input": format!("Question {n}?")}).to_string() + "\n")
        .collect()
}

/// The line numbers of the jobs that are stored, by their keys `K:n`.
async fn stored(place: &Place) -> BTreeSet<usize> {
    use sqlx::{Connection, Row};
    let url = format!("sqlite://{}", place.dir.path().join("r.db").display());
    let Ok(mut connection) = sqlx::SqliteConnection::connect(&url).await else { return BTreeSet::new() };
    let rows = sqlx::query("SELECT key FROM jobs").fetch_all(&mut connection).await.unwrap();
    let numbers: Vec<usize> =
        rows.iter().map(|row| row.get::<String, _>(0).rsplit(':').next().unwrap().parse().unwrap()).collect();
    let set: BTreeSet<usize> = numbers.iter().copied().collect();
    assert_eq!(set.len(), numbers.len(), "a line was stored twice");
    set
}

/// Submits until so many lines are acknowledged anew, then kills; the lines acknowledged so far. Fewer: it came to an end.
fn killed_after(place: &Place, new: usize) -> BTreeSet<usize> {
    let mut child = place
        .command(&["--config", "r.toml", "--json", "submit", "jobs.jsonl", "--key", "k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut text, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut fresh = 0;
    loop {
        let got = out.read(&mut piece).unwrap();
        text.extend_from_slice(&piece[..got]);
        fresh += String::from_utf8_lossy(&piece[..got]).matches("\"duplicate\":false").count();
        if got == 0 || fresh >= new {
            break;
        }
    }
    child.kill().unwrap();
    // What was on its way when it was killed was acknowledged, too.
    out.read_to_end(&mut text).unwrap();
    child.wait().unwrap();
    let text = String::from_utf8(text).unwrap();
    let whole = text.split("{\"line\":").skip(1).filter(|ack| ack.contains('}'));
    whole.map(|ack| ack.split(',').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_submission_leaves_what_it_acknowledged_and_is_completed_by_a_second() {
    let place = Place::with_provider(NOWHERE, "");
    place.write("jobs.jsonl", &lines(LINES));
    let mut before = 0;
    for round in 1..=3 {
        let acknowledged = killed_after(&place, 700);
        let stored = stored(&place).await;
        assert!(acknowledged.is_subset(&stored), "round {round}: acknowledged and not stored");
        // The file is gone through in order, so what is stored is its beginning: no line was left out.
        assert_eq!(stored.last(), Some(&stored.len()), "round {round}: a line was left out");
        let unheard = stored.len() - acknowledged.len();
        assert!(unheard <= GROUP, "round {round}: {unheard} stored and not acknowledged");
        assert!(before < stored.len() && stored.len() < LINES, "round {round}: {} stored", stored.len());
        before = stored.len();
    }
    let said = place.run(&["--config", "r.toml", "submit", "jobs.jsonl", "--key", "k"]);
    let count = |number: usize| {
        let text = number.to_string();
        if number < 1_000 { text } else { format!("{},{}", &text[..text.len() - 3], &text[text.len() - 3..]) }
    };
    let wanted = format!("{} new jobs submitted; {} had been submitted before\n", count(LINES - before), count(before));
    assert_eq!((said.code, said.out), (0, wanted));
    assert_eq!(stored(&place).await, (1..=LINES).collect());
}

/// The most memory that submitting so many lines took, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib(count: usize) -> u64 {
    let place = Place::with_provider(NOWHERE, "");
    place.write("jobs.jsonl", &lines(count));
    let mut child = place
        .command(&["--config", "r.toml", "submit", "jobs.jsonl"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        // The mark only rises, and its file is gone with the process.
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(peak);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn ten_times_the_lines_take_no_more_memory() {
    let (few, many) = (peak_kib(2_000), peak_kib(20_000));
    // The database's own cache fills up to 16 MiB.
    assert!(few > 0 && many < few + (24 << 10), "{few} KiB for 2,000 lines, {many} KiB for 20,000");
}

#[test]
fn what_is_listed_of_a_long_submission_is_one_document() {
    let place = Place::with_provider(NOWHERE, "");
    place.write("jobs.jsonl", &lines(1_200));
    let said = place.run(&["--config", "r.toml", "--json", "submit", "jobs.jsonl"]).json();
    let items = said["items"].as_array().unwrap();
    let numbers: Vec<u64> = items.iter().map(|ack| ack["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=1_200).collect::<Vec<_>>());
    assert_eq!(said["next_cursor"], Value::Null);
}
