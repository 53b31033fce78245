//! Every `--help`, as people read it at 80 columns.

use crate::rig::Place;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["demo"],
    &["serve"],
    &["worker"],
    &["submit"],
    &["run"],
    &["jobs"],
    &["job"],
    &["explain"],
    &["results"],
    &["usage"],
    &["failures"],
    &["resets"],
    &["holds"],
    &["holds", "close"],
    &["holds", "release"],
    &["queues"],
    &["queues", "pause"],
    &["queues", "resume"],
    &["schedules"],
    &["schedules", "add"],
    &["schedules", "rm"],
    &["schedules", "pause"],
    &["schedules", "resume"],
    &["schedules", "run"],
    &["cancel"],
    &["retry"],
    &["message"],
    &["delete"],
    &["requeue"],
    &["reprioritise"],
    &["pause"],
    &["resume"],
    &["classify"],
    &["sim"],
    &["doctor"],
    &["migrate"],
    &["migrate", "status"],
    &["migrate", "up"],
    &["migrate", "verify"],
    &["move"],
    &["completions"],
    &["config"],
    &["config", "check"],
];

#[test]
fn every_help_teaches() {
    let place = Place::new();
    let mut pages = String::new();
    for command in COMMANDS {
        let arguments: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let said = place.run(&arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{command:?}");
        assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{command:?} is wider than 80 columns");
        if !matches!(*command, [] | ["config"]) {
            assert!(said.out.contains("Example"), "{command:?} has no example");
        }
        pages.push_str(&format!("$ reprieve {}\n{}\n", arguments.join(" "), said.out));
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn the_snapshot_forgets_no_command() {
    let place = Place::new();
    let listed = |arguments: &[&str]| -> Vec<String> {
        let out = place.run(arguments).out;
        let commands = out.split("Commands:\n").nth(1).unwrap_or_default();
        let lines = commands.lines().take_while(|line| line.starts_with("  "));
        let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    };
    for name in listed(&["--help"]) {
        assert!(COMMANDS.iter().any(|command| command.first() == Some(&name.as_str())), "{name}");
        for below in listed(&[&name, "--help"]) {
            assert!(COMMANDS.contains(&[name.as_str(), below.as_str()].as_slice()), "{name} {below}");
        }
    }
}
