//! `reprieve sim`, as a process.

use super::{client, question};
use reprieve::sim::Stats;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprieve"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn ended(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(arguments).output().await.unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn a_wrong_scenario_is_told_by_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.toml");
    std::fs::write(&path, "name = \"x\"\n\n[answer]\nlatancy = \"1s\"\n").unwrap();
    let (code, stderr) = ended(&["sim", "--scenario", path.to_str().unwrap()]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.starts_with(&format!("error: {}:4: unknown field `latancy`", path.display())), "{stderr}");

    let (code, stderr) = ended(&["sim", "--scenario", "clam"]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("there are: calm, demo, metered"), "{stderr}");
    let (code, stderr) = ended(&["sim", "--scenario", "./none.toml"]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("./none.toml: cannot be read"), "{stderr}");
}

#[tokio::test]
async fn a_port_in_use_is_told_as_that() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, stderr) = ended(&["sim", "--port", &port.to_string()]).await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: Address already in use")),
        "{stderr}"
    );
}

#[tokio::test]
async fn it_serves_until_it_is_interrupted_and_then_says_what_was_counted() {
    let mut child = command(&["--json", "sim", "--scenario", "metered", "--port", "0", "--seed", "3"]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let greeting = stderr.next_line().await.unwrap().unwrap();
    let url = greeting.split(' ').find(|word| word.starts_with("http://")).unwrap();
    let asked = client().post(format!("{url}/v1/chat/completions")).bearer_auth("sim-a").json(&question("m", false));
    assert_eq!(asked.send().await.unwrap().status(), 200);

    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stats: Stats = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((stats.scenario.as_str(), stats.seed, stats.totals.completed), ("metered", 3, 1));
}
