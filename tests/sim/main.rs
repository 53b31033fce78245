//! The simulated provider over real sockets: what clients get, and what is counted of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a test needs and does not get ends it")]

mod command;
mod dialects;
mod documents;
mod faults;
mod metering;

use reprieve::clock::Clock;
use reprieve::sim::{Counts, Scenario, Sim, SimOptions};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A simulator of a scenario given as text, without the line of its name.
pub(crate) async fn sim(text: &str) -> Sim {
    sim_at(text, Clock::system()).await
}

pub(crate) async fn sim_at(text: &str, clock: Clock) -> Sim {
    let scenario = Scenario::parse(&format!("name = \"test\"\n{text}"), "test.toml").unwrap();
    Sim::start(scenario, SimOptions { clock, ..SimOptions::default() }).await.unwrap()
}

/// One question to a model, in OpenAI's dialect.
pub(crate) fn question(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "What is at the quay?"}]})
}

/// One client for all: making one is slow. It keeps no connections, because each test has a runtime of its own.
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> =
        LazyLock::new(|| reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap());
    &CLIENT
}

pub(crate) async fn post(sim: &Sim, path: &str, key: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    client().post(format!("{}{path}", sim.url())).bearer_auth(key).json(body).send().await
}

pub(crate) async fn ask(sim: &Sim, model: &str) -> reqwest::Response {
    post(sim, "/v1/chat/completions", "sim-test", &question(model, false)).await.unwrap()
}

pub(crate) fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

/// The figures of everything, once nothing is in flight. Ends are counted before the client sees them, except where it
/// is the client that leaves: so this looks again until the connection's end was noticed.
pub(crate) async fn settled(sim: &Sim) -> Counts {
    loop {
        let totals = sim.stats().totals;
        if totals.in_flight == 0 {
            let ends =
                totals.completed + totals.refused + totals.failed + totals.dropped + totals.faulted + totals.abandoned;
            assert_eq!(totals.received, ends);
            return totals;
        }
        tokio::task::yield_now().await;
    }
}

/// Awaits something while a manual clock goes on by 10 ms whenever `ready` says so and everything else stands still.
pub(crate) async fn advancing<T>(clock: &Clock, ready: impl Fn() -> bool, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            biased;
            done = &mut future => return done,
            () = tokio::task::yield_now() => {
                if ready() {
                    clock.advance_ms(10);
                }
            }
        }
    }
}

/// Sends a request over a plain socket and reads to its end: every byte, and the error it ended with, if any.
pub(crate) async fn raw(sim: &Sim, body: &Value) -> (String, Option<std::io::ErrorKind>) {
    let mut stream = TcpStream::connect(sim.addr()).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\nconnection: close\r\nauthorization: Bearer sim-test\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let error = stream.read_to_end(&mut received).await.err().map(|error| error.kind());
    (String::from_utf8_lossy(&received).into_owned(), error)
}
