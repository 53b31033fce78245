//! What is done to jobs, by ids and by frozen filters: shown first, done once, told whole.

use crate::rig::{Place, Said};
use serde_json::{Value, json};

fn place() -> Place {
    Place::with_provider("http://127.0.0.1:9/v1/", "")
}

fn run(place: &Place, arguments: &[&str]) -> Said {
    place.run(&[&["--config", "r.toml"], arguments].concat())
}

/// Submits so many jobs with a label; their ids, newest first.
fn submit(place: &Place, label: &str, count: usize) -> Vec<String> {
    let line = json!({"model": "m", "provider": "sim", "input": "x", "labels": {"run": label}}).to_string() + "\n";
    place.write("jobs.jsonl", &line.repeat(count));
    assert_eq!(run(place, &["submit", "jobs.jsonl"]).code, 0);
    ids(place, &["--label", &format!("run={label}")])
}

fn ids(place: &Place, filters: &[&str]) -> Vec<String> {
    let page = run(place, &[&["jobs", "--json", "--limit", "1000"], filters].concat()).json();
    page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

fn outcomes(said: &Said) -> Vec<String> {
    let items = said.json()["items"].clone();
    items.as_array().unwrap().iter().map(|item| item["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_retry_acts_once_however_often_it_is_asked_for() {
    let place = place();
    let jobs = submit(&place, "a", 3);
    assert_eq!(run(&place, &["cancel", "--label", "run=a"]).out, "3 cancelled.\n");
    // Cancelled ones are retried by name, and not by a filter that names no state.
    assert_eq!(run(&place, &["retry", "--label", "run=a"]).out, "No job matches; there is nothing to retry.\n");
    let dry = run(&place, &["retry", "--label", "run=a", "--state", "cancelled", "--dry-run", "--json"]).json();
    assert_eq!((&dry["count"], &dry["can"], &dry["states"]), (&json!(3), &json!(3), &json!({"cancelled": 3})));
    assert_eq!(ids(&place, &[]).len(), 3, "a dry run does nothing");
    let one = run(&place, &["retry", &jobs[0], "--json"]);
    let new = one.json()["items"][0]["job"].as_str().unwrap().to_owned();
    assert_eq!(outcomes(&one), ["retried"]);
    let again = run(&place, &["retry", &jobs[0]]);
    assert_eq!((again.code, again.out), (0, format!("{}  had been retried before, as {new}\n", jobs[0])));
    let dry = run(&place, &["retry", "--label", "run=a", "--state", "cancelled", "--dry-run"]);
    assert!(dry.out.contains("2 will be retried, 1 cannot: retried before"), "{}", dry.out);
    let rest = run(&place, &["retry", "--label", "run=a", "--state", "cancelled"]);
    assert_eq!(rest.out, "2 retried; 1 had been retried before.\n");
    assert_eq!(ids(&place, &["--state", "queued"]).len(), 3);
    let row = run(&place, &["job", &new, "--json"]).json()["job"].clone();
    assert_eq!((row["retry_of"].as_str(), &row["labels"]), (Some(jobs[0].as_str()), &json!({"run": "a"})));
}

#[test]
fn a_filter_that_means_many_wants_a_yes() {
    let place = place();
    submit(&place, "many", 1_001);
    let said = run(&place, &["cancel", "--all"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert_eq!(said.err, "error: this means 1,001 jobs; look at them with --dry-run, then write the same with --yes\n");
    let said = run(&place, &["cancel", "--all", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (0, "1,001 cancelled.\n"), "{said:?}");
    let said = run(&place, &["delete", "--all", "--yes", "--json"]);
    assert_eq!(outcomes(&said).iter().filter(|outcome| *outcome == "deleted").count(), 1_001);
    assert!(ids(&place, &[]).is_empty());
}

#[test]
fn jobs_are_moved_and_each_says_what_became_of_it() {
    let place = place();
    let jobs = submit(&place, "a", 2);
    let (first, second) = (jobs[0].as_str(), jobs[1].as_str());
    assert_eq!(outcomes(&run(&place, &["pause", first, "--reason", "wait", "--json"])), ["paused"]);
    assert_eq!(outcomes(&run(&place, &["pause", first, second, "--json"])), ["unchanged", "paused"]);
    let why = run(&place, &["explain", first, "--json"]).json();
    assert_eq!((&why["reason"], &why["who"]), (&json!("paused"), &json!("operator")), "{why}");
    assert_eq!(outcomes(&run(&place, &["resume", "--label", "run=a", "--json"])), ["resumed", "resumed"]);
    let said = run(&place, &["reprioritise", "--priority", "-7", first]);
    assert_eq!((said.code, said.out), (0, format!("{first}  reprioritised\n")));
    assert_eq!(run(&place, &["job", first, "--json"]).json()["job"]["priority"], -7);
    // Nothing backs off here.
    assert_eq!(outcomes(&run(&place, &["requeue", first, "--json"])), ["unchanged"]);
    let said = run(&place, &["delete", first]);
    assert!(said.code == 1 && said.out.contains("has not ended (it is queued)"), "{said:?}");
    assert_eq!(outcomes(&run(&place, &["cancel", first, "--json"])), ["cancelled"]);
    assert_eq!(outcomes(&run(&place, &["pause", first, "--json"])), ["already_final"]);
    assert_eq!(outcomes(&run(&place, &["delete", first, "--json"])), ["deleted"]);
    let said = run(&place, &["delete", first]);
    assert!(said.code == 1 && said.out.contains("there is no such job"), "{said:?}");
}

#[test]
fn a_live_job_is_told_and_an_ended_one_is_not() {
    let place = place();
    let job = submit(&place, "a", 1).remove(0);
    let said = run(&place, &["message", &job, "Be brief.", "--key", "k"]);
    assert!(said.code == 0 && said.out.starts_with("told; it is read before turn 1\n"), "{said:?}");
    let said = run(&place, &["message", &job, "Be brief.", "--key", "k"]);
    assert_eq!((said.code, said.out.as_str()), (0, "had been told before; it is read before turn 1\n"));
    let said = run(&place, &["message", &job, "Be long.", "--key", "k"]);
    assert!(said.code == 1 && said.err.starts_with("error: --key: the key was used for another message"), "{said:?}");
    let said = place.run_with(&["--config", "r.toml", "message", &job, "-"], "And of stdin.\n", &[]);
    assert_eq!(said.code, 0, "{said:?}");
    let transcript = run(&place, &["job", &job, "--json"]).json()["transcript"].clone();
    let texts: Vec<&str> =
        transcript.as_array().unwrap().iter().map(|entry| entry["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["x", "Be brief.", "And of stdin.\n"]);
    run(&place, &["cancel", &job]);
    let said = run(&place, &["message", &job, "Too late."]);
    assert!(said.code == 1 && said.err.contains("has ended (cancelled)"), "{said:?}");
}

#[test]
fn a_queue_is_paused_and_goes_on() {
    let place = place();
    let job = submit(&place, "a", 1).remove(0);
    let said = run(&place, &["queues", "pause", "default", "--reason", "invoice"]);
    assert_eq!(
        said.out,
        "default is paused; what runs finishes\nnext: reprieve queues resume default  (to let it go on)\n"
    );
    let said = run(&place, &["queues", "pause", "default"]);
    assert!(
        said.out.contains("it had been since") && said.out.replace('\n', " ").contains("by command line: invoice"),
        "{said:?}"
    );
    assert_eq!(run(&place, &["queues", "--json"]).json()["items"][0]["paused"]["by"], "command line");
    assert_eq!(run(&place, &["explain", &job, "--json"]).json()["reason"], "queue_paused");
    let said = run(&place, &["queues", "resume", "default"]);
    assert!(said.out.starts_with("default goes on; it had been paused since"), "{said:?}");
    assert_eq!(run(&place, &["queues", "resume", "default"]).out, "default was not paused; nothing was changed\n");
}

#[test]
fn a_scope_is_closed_by_hand_and_of_several_holds_one_is_meant() {
    let place = place();
    submit(&place, "a", 2);
    let close =
        |model: &str| run(&place, &["holds", "close", "--provider", "127.0.0.1", "--model", model, "--for", "2h"]);
    let said = close("m");
    assert!(said.code == 0 && said.out.contains("2 turns wait behind it"), "{said:?}");
    let last = said.out.lines().last().unwrap();
    assert!(last.starts_with("next: reprieve holds release ") && said.out.contains("Z (now)\n"), "{said:?}");
    let said = run(&place, &["holds", "--model", "other"]);
    assert_eq!(said.out, "No hold matches.\n", "one scope is closed");
    assert_eq!(close("n").code, 0);
    assert_eq!(ids(&place, &["--state", "deferred"]).len(), 2);
    let said = run(&place, &["holds", "release", "--provider", "127.0.0.1"]);
    assert!(said.code == 2 && said.err.contains("2 open holds match: ") && said.err.contains("--all"), "{said:?}");
    let said = run(&place, &["holds", "release", "--provider", "127.0.0.1", "--model", "n"]);
    assert!(said.code == 0 && said.out.contains("127.0.0.1/sim/n is released"), "{said:?}");
    assert!(said.out.contains("/n is released; it had been closed until "), "no provider named an end: {said:?}");
    let said = run(&place, &["holds", "release", "--all", "--reason", "paid", "--json"]);
    assert_eq!(said.json()["items"].as_array().unwrap().len(), 1);
    let ended: Value = run(&place, &["holds", "--include-ended", "--json"]).json();
    assert!(ended["items"].as_array().unwrap().iter().all(|hold| hold["end"] == "released"), "{ended}");
}

#[test]
fn a_schedule_is_added_tried_stopped_and_removed() {
    let place = place();
    place.write("job.json", &json!({"model": "m", "provider": "sim", "input": "x"}).to_string());
    let add = |cron: &str| {
        run(&place, &["schedules", "add", "nightly", "--cron", cron, "--zone", "Europe/Berlin", "job.json"])
    };
    let said = add("30 2 * * MON-FRI");
    assert_eq!(said.code, 0, "{said:?}");
    for told in
        ["30 2 * * MON-FRI in Europe/Berlin", "  next ", "It was added.", "next: reprieve schedules run nightly"]
    {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
    assert!(add("30 2 * * MON-FRI").out.contains("It is so already."));
    let said = add("0 3 * * *");
    assert!(said.code == 1 && said.err.starts_with("error: NAME: another schedule is called nightly"), "{said:?}");
    let said = run(&place, &["schedules", "run", "nightly"]);
    let job = said.out.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(run(&place, &["job", &job, "--json"]).json()["job"]["state"], "queued");
    let said = run(&place, &["schedules", "pause", "nightly", "--reason", "holidays"]);
    assert!(said.out.starts_with("nightly is paused"), "{said:?}");
    let shown = run(&place, &["schedules", "nightly", "--json"]).json();
    assert_eq!((&shown["paused"]["reason"], &shown["next_ms"]), (&json!("holidays"), &Value::Null));
    assert_eq!(shown["runs"][0]["job"].as_str(), Some(job.as_str()));
    assert_eq!(ids(&place, &["--schedule", shown["id"].as_str().unwrap()]), [job]);
    assert!(run(&place, &["schedules", "resume", "nightly"]).out.starts_with("nightly fires next at "));
    assert_eq!(run(&place, &["schedules", "--json"]).json()["items"][0]["upcoming_ms"].as_array().unwrap().len(), 3);
    assert!(run(&place, &["schedules"]).out.lines().all(|line| line.chars().count() <= 80));
    assert_eq!(run(&place, &["schedules", "rm", "nightly"]).out, "nightly is removed; its jobs stay\n");
    assert!(run(&place, &["schedules"]).out.starts_with("There is no schedule yet."));
}

#[test]
fn an_entry_of_the_configuration_is_no_provider_and_is_told_from_one() {
    let place = place();
    let note = "note: `sim` is an entry of the configuration; its scope is --provider 127.0.0.1 --account sim\n";
    for list in ["jobs", "failures", "resets", "holds", "results", "usage", "cancel", "retry", "delete", "resume"] {
        let said = run(&place, &[list, "--provider", "other, sim"]);
        assert!(said.code == 0 && said.err.starts_with(note), "{list}: {said:?}");
        let said = run(&place, &[list, "--provider", "127.0.0.1", "--account", "sim"]);
        assert!(said.code == 0 && !said.err.contains("note:"), "{list}: {said:?}");
    }
    assert_eq!(run(&place, &["jobs", "--provider", "sim", "--json"]).err, "", "programs read problems there");
}

#[test]
fn tables_are_as_wide_as_one_says() {
    let place = place();
    submit(&place, "a", 1);
    let widest = |columns: &str| {
        let arguments = ["--config", "r.toml", "jobs"];
        let said = place.run_with(&arguments, "", &[("COLUMNS", columns)]);
        said.out.lines().take(2).map(|line| line.chars().count()).max().unwrap()
    };
    let (narrow, wide) = (widest("80"), widest("200"));
    assert!(narrow <= 80 && wide > 80 && wide <= 200, "{narrow} {wide}");
}
