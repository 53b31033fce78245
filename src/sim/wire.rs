//! The connection as seen from below HTTP: a stream that can be reset instead of closed, and bodies that wait, break
//! off or never end.

use super::ledger::{Arrival, Outcome, Shut};
use super::{Shared, core::Admitted};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Whether a connection ends by a reset.
#[derive(Debug, Default)]
pub(super) struct Fate(AtomicBool);

impl Fate {
    pub(super) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A TCP stream whose close is a reset once its fate says so.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    fate: Arc<Fate>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, fate: Arc<Fate>) -> Self {
        Self { stream, fate }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.fate.is_reset() {
            // Without lingering, the close that follows sends RST. Where it cannot be set the peer sees an early close,
            // which is a dropped connection, too.
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.fate.is_reset() {
            // A shutdown would send FIN first.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Why a body ends without its end; told to nobody but the HTTP server, which closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut on purpose")]
pub(super) struct Cut;

/// One move of a scripted body.
#[derive(Debug)]
pub(super) enum Step {
    Data(Bytes),
    WaitMs(i64),
    Forever,
    /// RST.
    Reset,
    /// FIN, without the end that the framing promised.
    Cut,
}

/// A response body.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nobody counts these: the simulator's own endpoints.
    Plain(Option<Bytes>),
    Whole(Option<Bytes>, Ticket),
    Steps(Steps),
}

pub(super) struct Steps {
    next: VecDeque<Step>,
    ticket: Ticket,
    fate: Arc<Fate>,
    sleep: Option<Pin<Box<dyn Future<Output = i64> + Send>>>,
    /// Whether what stands before a cut had its chance to be flushed.
    flushed: bool,
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Steps").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Steps {
    pub(super) fn new(next: VecDeque<Step>, ticket: Ticket, fate: Arc<Fate>) -> Self {
        Self { next, ticket, fate, sleep: None, flushed: false }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            match self.next.front_mut() {
                None => {
                    self.ticket.done();
                    return Poll::Ready(None);
                }
                Some(Step::Data(bytes)) => {
                    let bytes = std::mem::take(bytes);
                    self.next.pop_front();
                    self.flushed = false;
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Step::WaitMs(wait_ms)) => {
                    let clock = self.ticket.shared.clock.clone();
                    let until_ms = clock.now_ms().saturating_add(*wait_ms);
                    self.next.pop_front();
                    self.sleep = Some(Box::pin(async move { clock.sleep_until(until_ms).await }));
                }
                // The connection's task is woken when the peer leaves or the simulator stops.
                Some(Step::Forever) => return Poll::Pending,
                Some(Step::Reset | Step::Cut) if !self.flushed => {
                    // The server flushes what it has whenever a body has nothing yet.
                    self.flushed = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(step) => {
                    if matches!(step, Step::Reset) {
                        self.fate.reset();
                    }
                    self.ticket.done();
                    return Poll::Ready(Some(Err(Cut)));
                }
            }
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Plain(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Whole(bytes, ticket) => {
                ticket.done();
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Steps(steps) => steps.poll_step(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain(bytes) | Self::Whole(bytes, _) => bytes.is_none(),
            Self::Steps(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain(bytes) | Self::Whole(bytes, _) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
            }
            Self::Steps(_) => SizeHint::default(),
        }
    }
}

/// A request's account: settled once, when its response has left or could not.
#[derive(Debug)]
pub(super) struct Ticket {
    shared: Arc<Shared>,
    admitted: Option<Admitted>,
    /// How it ends if it goes as planned.
    pub planned: Outcome,
    pub sent_tokens: u64,
    pub shut: Option<Shut>,
}

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>, admitted: Admitted) -> Self {
        Self { shared, admitted: Some(admitted), planned: Outcome::Completed, sent_tokens: 0, shut: None }
    }

    pub(super) fn head(&self, status: u16) {
        if let Some(admitted) = &self.admitted {
            self.shared.core().head(admitted, status);
        }
    }

    /// It went as planned.
    pub(super) fn done(&mut self) {
        let (planned, shut) = (self.planned, self.shut);
        self.settle(planned, shut);
    }

    fn settle(&mut self, outcome: Outcome, shut: Option<Shut>) {
        if let Some(admitted) = self.admitted.take() {
            let mut core = self.shared.core();
            // The order is drawn under the lock, so that it is the order in which the core sees the ends.
            let at = Arrival { order: self.shared.next_order(), at_ms: self.shared.clock.now_ms() };
            core.end(&admitted, outcome, self.sent_tokens, shut, at);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A stall that the client or the simulator's end cut short went as planned, too.
        let outcome = if self.planned == Outcome::Faulted { Outcome::Faulted } else { Outcome::Abandoned };
        self.settle(outcome, None);
    }
}
