//! A server that says exactly what a script tells it to, byte for byte, and breaks off how the script wants it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does on one connection, in order; at the end it closes.
#[derive(Clone, Debug)]
pub enum Act {
    /// Waits for a whole request and keeps it.
    Request,
    Send(Vec<u8>),
    /// Waits until the test says so.
    Gate(Arc<Notify>),
    /// Says nothing more until the client goes away.
    Stall,
    /// The same, and then tells the test that it has gone.
    Gone(Arc<Notify>),
    /// Breaks the connection with a reset.
    Reset,
}

pub fn send(bytes: impl AsRef<[u8]>) -> Act {
    Act::Send(bytes.as_ref().to_vec())
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// One script for each connection, in the order they come; a connection without a script is reset.
    pub async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let mut scripts = scripts.into_iter();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let script = scripts.next().unwrap_or_else(|| vec![Act::Reset]);
                tokio::spawn(play(stream, script, Arc::clone(&kept)));
            }
        });
        Self { address, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn play(mut stream: TcpStream, script: Vec<Act>, requests: Arc<Mutex<Vec<Request>>>) {
    stream.set_nodelay(true).unwrap();
    for act in script {
        match act {
            Act::Request => match read_request(&mut stream).await {
                Some(request) => requests.lock().unwrap().push(request),
                None => return,
            },
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Gate(gate) => gate.notified().await,
            Act::Stall => return until_gone(&mut stream).await,
            Act::Gone(gone) => {
                until_gone(&mut stream).await;
                gone.notify_one();
                return;
            }
            Act::Reset => {
                socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                return;
            }
        }
    }
    let _ = stream.shutdown().await;
    // What the client still sends must not turn the close into a reset.
    until_gone(&mut stream).await;
}

async fn until_gone(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while matches!(stream.read(&mut rest).await, Ok(n) if n > 0) {}
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { line, headers, body: bytes[head..head + length].to_vec() })
}

/// A whole response with a length.
pub fn response(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Act {
    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    send([text.as_bytes(), body].concat())
}

pub const JSON: (&str, &str) = ("content-type", "application/json");

/// The head of an event stream that comes in chunks.
pub const SSE_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// The head of an event stream that ends with its connection.
pub const SSE_HEAD_TO_EOF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// One chunk of a chunked body.
pub fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole event stream, one chunk a frame.
pub fn sse(frames: &[&str]) -> Act {
    let mut bytes = SSE_HEAD.to_vec();
    for frame in frames {
        bytes.extend(chunk(format!("{frame}\n\n")));
    }
    bytes.extend(LAST_CHUNK);
    Act::Send(bytes)
}
