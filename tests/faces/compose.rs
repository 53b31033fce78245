//! `docker-compose.yml`, its configuration and the image: every command in them is one of the binary's, and what asks
//! whether the service is well asks it in words that it answers.

use crate::rig::Place;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root(name)).unwrap()
}

/// The list behind a key, each wherever it stands: `command: ["serve"]`.
fn lists(text: &str, key: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(key))
        .filter(|list| list.starts_with('['))
        .map(|list| serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}")))
        .collect()
}

/// Parsed whole up to the help that it ends in.
fn parses(place: &Place, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let said = place.run(&words);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{words:?}");
}

#[test]
fn every_command_is_one_of_the_binary() {
    let place = Place::new();
    let compose = text("docker-compose.yml");
    let commands = lists(&compose, "command: ");
    for command in &commands {
        parses(&place, command);
    }
    let first: Vec<&str> =
        commands.iter().flatten().map(String::as_str).filter(|word| !word.starts_with(['-', '/'])).collect();
    for wanted in ["migrate", "sim", "serve", "worker"] {
        assert!(first.contains(&wanted), "{wanted} is not in {first:?}");
    }
    let entries = lists(&compose, "entrypoint: ");
    assert_eq!(entries, [["reprieve", "--config", "/etc/reprieve.toml"]]);
    let image = text("Dockerfile");
    assert_eq!(lists(&image, "ENTRYPOINT "), [["reprieve"]]);
    for command in lists(&image, "CMD ") {
        parses(&place, &command);
    }
    // A command that does not exist is found out.
    assert_ne!(place.run(&["serve", "--no-such-flag", "--help"]).code, 0);
    // What stands in the head and in the README goes through the entry point.
    let shown = [compose, text("README.md")].join("\n");
    let mut seen = 0;
    for line in shown.lines() {
        let Some((_, rest)) = line.split_once(" reprieve ").filter(|(head, _)| head.contains("docker compose run"))
        else {
            continue;
        };
        let words = rest.split(" #").next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        parses(&place, &words);
        seen += 1;
    }
    assert!(seen >= 3, "{seen}");
}

/// The environment that compose gives, with its defaults.
fn environment(compose: &str) -> Vec<(String, String)> {
    let default = |text: &str| {
        let mut text = text.to_owned();
        while let Some((head, rest)) = text.clone().split_once("${") {
            let (name, tail) = rest.split_once('}').unwrap();
            text = format!("{head}{}{tail}", name.split_once(":-").unwrap().1);
        }
        text
    };
    let of_ours = compose.lines().map(str::trim).filter(|line| line.starts_with("REPRIEVE_"));
    of_ours.map(|line| line.split_once(": ").unwrap()).map(|(name, value)| (name.to_owned(), default(value))).collect()
}

#[test]
fn its_configuration_is_taken_and_drains_within_the_patience_of_compose() {
    let place = Place::new();
    let compose = text("docker-compose.yml");
    let environment = environment(&compose);
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(environment.len(), 2, "{environment:?}");
    let path = root("config/compose.toml");
    let said = place.run_with(&["--config", path.to_str().unwrap(), "--json", "config", "check"], "", &environment);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("postgres://") && !said.out.contains("reprieve:reprieve@"), "{}", said.out);
    let settings: toml::Table = text("config/compose.toml").parse().unwrap();
    let minutes = |text: &str| text.trim().trim_matches('"').strip_suffix('m').unwrap().parse::<u32>().unwrap();
    let drain = minutes(settings["worker"]["drain"].as_str().unwrap());
    let patience = compose.lines().find_map(|line| line.trim().strip_prefix("stop_grace_period: ")).unwrap();
    assert!(drain < minutes(patience));
    let endpoint = settings["providers"]["sim"]["endpoint"].as_str().unwrap().to_owned();
    let sim = lists(&compose, "command: ").into_iter().find(|words| words[0] == "sim").unwrap();
    assert!(endpoint.contains(&format!(":{}/", sim.last().unwrap())), "{endpoint} {sim:?}");
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_asks_for_health_is_answered() {
    let compose = text("docker-compose.yml");
    let asked = compose.split("printf '").nth(1).unwrap().split('\'').next().unwrap();
    let asked = asked.replace("\\r", "\r").replace("\\n", "\n");
    let place = Place::new();
    let child = place
        .command(&["serve", "--no-worker"])
        .env("REPRIEVE__SERVER__BIND", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let at = line.trim().rsplit_once("http://").unwrap().1;
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{asked}\n{answer}");
}
