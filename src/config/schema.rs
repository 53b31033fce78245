//! The keys there are, section by section, and what is right for each.

use super::read::{Findings, Read, Section};
use super::{Config, Retention, Server, Worker, policies, providers};
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Sections and keys of releases to come: refused by name rather than as unknown.
const NOT_YET: [&str; 8] = ["batch", "webhooks", "tools", "mcp", "auth", "tokens", "schedules", "telemetry"];

const DAY_MS: i64 = 86_400_000;

/// Reads the whole tree. `environment` answers `${VAR}` of secrets; `home` is what relative paths of a file start at.
pub(super) fn read(
    mut root: Section<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> Config {
    let database = super::database::url(&mut root, environment, findings);
    let postgres = super::database::postgres(root.section("postgres", findings), findings);
    let server = server(root.section("server", findings), findings);
    let worker = worker(root.section("worker", findings), findings);
    let policies = policies::read(root.section("recovery", findings), findings);
    let retention = retention(root.section("retention", findings), findings);
    let rules = rules(root.section("rules", findings), findings);
    let providers = providers::read(root.section("providers", findings), &policies, environment, findings);
    root.finish(&NOT_YET, findings);
    Config { database, postgres, server, worker, policies, retention, providers, rules }
}

fn server(mut section: Section<'_>, findings: &mut Findings) -> Server {
    const BIND: &str = "write an address and a port, for instance \"127.0.0.1:7171\"";
    const HOSTS: &str = "write a list of host names, for instance [\"reprieve.internal\"]";
    let unread = SocketAddr::from(([127, 0, 0, 1], 7171));
    let bind = section.text("bind", BIND, findings).map_or(unread, |read| {
        let key = section.key("bind");
        let bind = read.value.parse::<SocketAddr>().unwrap_or_else(|_| {
            findings.problem(&read.origin, &key, format!("`{}` is no address; {BIND}", read.value.escape_debug()));
            unread
        });
        if !bind.ip().is_loopback() {
            findings.problem(&read.origin, &key, not_loopback(bind));
        }
        findings.setting(&read.origin, &key, json!(bind.to_string()));
        bind
    });
    let hosts = section.texts("hosts", HOSTS, findings).map_or_else(Vec::new, |read| {
        let key = section.key("hosts");
        for host in &read.value {
            if !is_host(host) {
                let what = format!("`{}` is no host name (it stands without a port); {HOSTS}", host.escape_debug());
                findings.problem(&read.origin, &key, what);
            }
        }
        findings.setting(&read.origin, &key, json!(read.value));
        read.value.iter().map(|host| host.to_ascii_lowercase()).collect()
    });
    section.finish(&["tokens", "tls", "cors", "token"], findings);
    Server { bind, hosts }
}

/// Why an address is refused, and what would be right.
pub(crate) fn not_loopback(bind: SocketAddr) -> String {
    format!(
        "{bind} can be reached from other machines, and this release has no tokens to keep strangers out; \
         write a loopback address, for instance \"127.0.0.1:{}\"",
        bind.port()
    )
}

fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn worker(mut section: Section<'_>, findings: &mut Findings) -> Worker {
    let concurrency = section.integer("concurrency", 1..=100_000, findings);
    let queues = section.texts("queues", "write a list of queue names, or [\"*\"] for all", findings);
    let lease = section.duration_ms("lease", 3_000..=3_600_000, findings);
    let drain = section.duration_ms("drain", 0..=7 * DAY_MS, findings);
    if let Some(Read { value, origin }) = &queues {
        let what = match value.as_slice() {
            [] => Some("no queue at all"),
            [_] => None,
            several if several.iter().any(|queue| queue == "*") => Some("\"*\" stands for every queue"),
            _ => None,
        };
        if let Some(what) = what {
            let what = format!("{what}; write a list of queue names, or [\"*\"] alone for all");
            findings.problem(origin, &section.key("queues"), what);
        }
        findings.setting(origin, &section.key("queues"), json!(value));
    }
    let worker = Worker {
        concurrency: shown(&section, "concurrency", concurrency, findings).unwrap_or(1),
        queues: queues.map(|read| read.value).filter(|queues| queues != &["*"]).unwrap_or_default(),
        lease_ms: shown_ms(&section, "lease", lease, findings).unwrap_or(30_000),
        drain_ms: shown_ms(&section, "drain", drain, findings).unwrap_or(0),
    };
    section.finish(&["tags", "max_turns"], findings);
    worker
}

fn retention(mut section: Section<'_>, findings: &mut Findings) -> Retention {
    let records = section.duration_ms("records", 60_000..=36_500 * DAY_MS, findings);
    let jobs = section.duration_ms("jobs", 60_000..=36_500 * DAY_MS, findings);
    let retention = Retention {
        records_ms: shown_ms(&section, "records", records, findings).unwrap_or(DAY_MS),
        jobs_ms: shown_ms(&section, "jobs", jobs, findings).unwrap_or(DAY_MS),
    };
    section.finish(&["rollups", "audit"], findings);
    retention
}

fn rules(mut section: Section<'_>, findings: &mut Findings) -> Option<(String, String)> {
    let file = section.text("file", "write the path of a rule file", findings);
    let key = section.key("file");
    section.finish(&[], findings);
    let read = file?;
    let path = beside(&read.origin, &read.value);
    findings.setting(&read.origin, &key, json!(path.display().to_string()));
    match std::fs::read_to_string(&path) {
        Ok(text) => Some((text, path.display().to_string())),
        Err(error) => {
            let what = format!("{} cannot be read ({error}); write the path of a rule file", path.display());
            findings.problem(&read.origin, &key, what);
            None
        }
    }
}

/// A path as its place means it: one in a file starts at that file's directory.
pub(super) fn beside(origin: &super::Origin, path: &str) -> PathBuf {
    match origin {
        super::Origin::File { path: file, .. } => file.parent().unwrap_or(Path::new("")).join(path),
        _ => PathBuf::from(path),
    }
}

/// Notes an effective value, and hands it on.
pub(super) fn shown<T: serde::Serialize + Copy>(
    section: &Section<'_>,
    key: &str,
    read: Option<Read<T>>,
    findings: &mut Findings,
) -> Option<T> {
    let read = read?;
    findings.setting(&read.origin, &section.key(key), json!(read.value));
    Some(read.value)
}

/// The same for a duration.
pub(super) fn shown_ms(
    section: &Section<'_>,
    key: &str,
    read: Option<Read<i64>>,
    findings: &mut Findings,
) -> Option<i64> {
    let read = read?;
    findings.setting(&read.origin, &section.key(key), json!(crate::duration::write(read.value)));
    Some(read.value)
}
