//! A TCP proxy between one worker and its database that can swallow every byte for a while, and reset afterwards.

use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Of the whole proxy: a connection that has lived through a change is reset at the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    Swallow,
}

#[derive(Debug)]
pub struct Proxy {
    pub port: u16,
    mode: watch::Sender<Mode>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port of the loopback address, and leads to `target`.
    pub async fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, seen) = watch::channel(Mode::Pass);
        let target = Arc::new(target);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, Arc::clone(&target), seen.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { port, mode, accepting }
    }

    /// From now on bytes arrive nowhere; connections stay, and new ones are taken.
    pub fn swallow(&self) {
        self.mode.send_replace(Mode::Swallow);
    }

    /// Resets every connection that was swallowed from, and lets new ones pass.
    pub fn reset(&self) {
        self.mode.send_replace(Mode::Pass);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, target: Arc<String>, mut mode: watch::Receiver<Mode>) {
    let Ok(mut server) = TcpStream::connect(target.as_str()).await else { return reset(&client) };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut up, mut down) = (vec![0_u8; 1 << 16], vec![0_u8; 1 << 16]);
    let mut swallowing = *mode.borrow_and_update() == Mode::Swallow;
    loop {
        tokio::select! {
            biased;
            changed = mode.changed() => {
                let now_swallows = *mode.borrow_and_update() == Mode::Swallow;
                if changed.is_err() || (swallowing && !now_swallows) {
                    reset(&client);
                    reset(&server);
                    return;
                }
                swallowing = now_swallows;
            }
            // An end that comes while bytes are swallowed arrives nowhere either: the connection stays half open.
            read = client.read(&mut up) => match read {
                Ok(n) if swallowing && n > 0 => {}
                Ok(n) if !swallowing && n > 0 => if server.write_all(&up[..n]).await.is_err() { return },
                _ if swallowing => { let _ = mode.changed().await; mode.mark_changed(); }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                Ok(n) if swallowing && n > 0 => {}
                Ok(n) if !swallowing && n > 0 => if client.write_all(&down[..n]).await.is_err() { return },
                _ if swallowing => { let _ = mode.changed().await; mode.mark_changed(); }
                _ => return,
            },
        }
    }
}

/// The connection ends with an RST when it is let go.
fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}

#[tokio::test]
async fn what_is_swallowed_arrives_nowhere_and_ends_in_a_reset() {
    let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(echo.local_addr().unwrap().to_string()).await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    let mut answer = [0; 4];
    stream.write_all(b"ping").await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
    proxy.swallow();
    stream.write_all(b"lost").await.unwrap();
    let silence = tokio::time::timeout(std::time::Duration::from_millis(200), stream.read(&mut answer)).await;
    assert!(silence.is_err(), "{silence:?}");
    proxy.reset();
    assert_eq!(stream.read(&mut answer).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let mut again = TcpStream::connect(("127.0.0.1", proxy.port)).await.unwrap();
    again.write_all(b"pong").await.unwrap();
    again.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"pong");
}
