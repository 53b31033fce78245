//! One request on its way through the simulator: what the core decides, put into a response with its faults.

use super::answer::{self, Answer, Finish};
use super::ask::{Ask, Dialect, Wants};
use super::core::{Core, Refusing, Verdict};
use super::ledger::{Arrival, Outcome, Shut};
use super::naming::{self, Named, Reset};
use super::pieces::{Piece, Pieces, paced};
use super::refusal::{About, Kind, Refusal};
use super::scenario::{At, Deed, Framing, Manner, Rule};
use super::serve::{JSON, response};
use super::wire::{Cut, Fate, Reply, Step, Steps, Ticket};
use super::{Shared, text};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use std::collections::VecDeque;
use std::sync::Arc;

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");

/// One request on its way through the simulator.
pub(super) struct Turn {
    shared: Arc<Shared>,
    fate: Arc<Fate>,
    ask: Ask,
    arrival: Arrival,
}

impl Turn {
    pub(super) fn new(shared: Arc<Shared>, fate: Arc<Fate>, ask: Ask, arrival: Arrival) -> Self {
        Self { shared, fate, ask, arrival }
    }

    pub(super) async fn respond(self) -> Result<Response<Reply>, Cut> {
        let scenario = Arc::clone(&self.shared.scenario);
        let said = self.said(scenario.answer.chars, None, None);
        let cost_tokens = self.ask.prompt_tokens.saturating_add(said.tokens);
        let (admitted, verdict) = self.shared.core().admit(&self.ask, self.arrival, cost_tokens);
        let id = text::hash(&[&scenario.seed.to_le_bytes(), &admitted.n.to_le_bytes()]);
        let ticket = Ticket::new(Arc::clone(&self.shared), admitted);
        match verdict {
            Verdict::Answer => {
                let manner = Core::manner(&scenario, None);
                self.pause(manner.latency_ms).await;
                Ok(self.answer(id, &said, manner, ticket))
            }
            Verdict::Refuse(refusing) => {
                let rule = refusing.rule.map(|nth| &scenario.rules[nth]);
                self.pause(rule.and_then(|rule| rule.latency_ms).unwrap_or(0)).await;
                let skew_ms = Core::manner(&scenario, refusing.rule).date_skew_ms;
                Ok(self.refuse(id, &refusing, skew_ms, ticket))
            }
            Verdict::Play(nth) => {
                let manner = Core::manner(&scenario, Some(nth));
                self.pause(manner.latency_ms).await;
                self.play(id, said, &scenario.rules[nth], manner, ticket).await
            }
        }
    }

    async fn pause(&self, wait_ms: i64) {
        if wait_ms > 0 {
            self.shared.clock.sleep_until(self.shared.clock.now_ms().saturating_add(wait_ms)).await;
        }
    }

    /// What is still to be said, up to the request's cap and one of a rule.
    fn said(&self, chars: usize, cap: Option<u64>, finish: Option<&str>) -> Said {
        if self.ask.wants == Wants::Embeddings {
            return Said { text: String::new(), tokens: 0, finish: String::new() };
        }
        let mut text = self.ask.text(self.shared.scenario.seed, chars);
        let mut why = Finish::Stop;
        if let Some(max_tokens) = self.ask.max_tokens.into_iter().chain(cap).min() {
            let max_chars = usize::try_from(max_tokens).unwrap_or(usize::MAX).saturating_mul(text::CHARS_PER_TOKEN);
            // Bytes are never fewer than characters: most texts need not be counted.
            if text.len() > max_chars {
                let cut = text::seam(&text, max_chars);
                if cut < text.len() {
                    text.truncate(cut);
                    why = Finish::Length;
                }
            }
        }
        let tokens = text::tokens(text.chars().count());
        let finish = finish.unwrap_or_else(|| why.word(self.ask.dialect)).to_owned();
        Said { text, tokens, finish }
    }

    fn in_dialect<'a>(&'a self, id: u64, said: &'a Said) -> Answer<'a> {
        Answer {
            dialect: self.ask.dialect,
            id,
            model: &self.ask.model,
            text: &said.text,
            finish: &said.finish,
            prompt_tokens: self.ask.prompt_tokens,
            completion_tokens: said.tokens,
            created_s: self.arrival.at_ms / 1_000,
            usage_frame: self.ask.usage_frame,
        }
    }

    /// A whole answer, in good order.
    fn answer(&self, id: u64, said: &Said, manner: Manner, ticket: Ticket) -> Response<Reply> {
        let pieces = self.pieces(id, said, manner);
        let content_type = if self.ask.stream { EVENTS } else { JSON };
        self.deliver(id, pieces, manner, content_type, ticket, said.tokens)
    }

    fn deliver(
        &self,
        id: u64,
        pieces: Pieces,
        manner: Manner,
        content_type: HeaderValue,
        mut ticket: Ticket,
        sent_tokens: u64,
    ) -> Response<Reply> {
        ticket.sent_tokens = sent_tokens;
        match pieces {
            Pieces::Body(body) => {
                self.whole(id, StatusCode::OK, content_type, body.into(), manner.date_skew_ms, ticket)
            }
            Pieces::Frames(frames) => {
                let steps = paced(frames, manner.chunk_latency_ms);
                self.stepwise(id, content_type, steps, manner.date_skew_ms, ticket)
            }
        }
    }

    fn pieces(&self, id: u64, said: &Said, manner: Manner) -> Pieces {
        let answer = self.in_dialect(id, said);
        if self.ask.wants == Wants::Embeddings {
            let seed = self.shared.scenario.seed;
            return Pieces::Body(answer::embeddings(&self.ask.model, self.ask.inputs, self.ask.prompt_tokens, seed));
        }
        if !self.ask.stream {
            return Pieces::Body(answer.whole());
        }
        let frames = answer.frames(manner.chunk_chars);
        let other = |frame: String| Piece { bytes: frame.into(), text: false };
        let text = |frame: String| Piece { bytes: frame.into(), text: true };
        let all = frames.head.into_iter().map(other).chain(frames.text.into_iter().map(text));
        Pieces::Frames(all.chain(frames.tail.into_iter().map(other)).collect())
    }

    fn refuse(&self, id: u64, refusing: &Refusing, skew_ms: i64, mut ticket: Ticket) -> Response<Reply> {
        let dialect = refusing.refuse.dialect.unwrap_or(self.ask.dialect);
        let now_ms = self.shared.clock.now_ms();
        let named = match refusing.named_ms() {
            None => Named::default(),
            Some(named_ms) => {
                let conventions = refusing.refuse.naming.as_deref();
                let conventions = conventions.unwrap_or_else(|| naming::usual(dialect, refusing.kind));
                Named::new(Reset { now_ms, named_ms, skew_ms, limit: refusing.limit }, refusing.kind, conventions)
            }
        };
        if refusing.kind.refuses() {
            ticket.planned = Outcome::Refused;
            ticket.shut = Some(Shut { named_ms: named.until_ms, true_ms: refusing.true_ms });
        } else {
            // A failing server's `retry-after` closes no scope.
            ticket.planned = Outcome::Failed;
        }
        let request_id = format!("req_{id:016x}");
        let about = About {
            kind: refusing.kind,
            dialect,
            model: &self.ask.model,
            limit: refusing.limit,
            requested: refusing.requested,
            per_ms: refusing.per_ms,
            detail: "",
            request_id: &request_id,
        };
        let refusal = Refusal::new(about, named);
        let status = refusing.refuse.status.unwrap_or(refusal.status);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        let content_type = HeaderValue::from_static(refusal.content_type);
        let mut response = self.whole(id, status, content_type, refusal.body.into(), skew_ms, ticket);
        // A client measures a wrong clock by this header, so it must be this clock's and not the system's.
        response.headers_mut().insert(header::DATE, date(now_ms.saturating_add(skew_ms)));
        for (name, value) in refusal.headers {
            response.headers_mut().append(name, value);
        }
        response
    }

    /// A rule's deed.
    async fn play(
        &self,
        id: u64,
        said: Said,
        rule: &Rule,
        manner: Manner,
        mut ticket: Ticket,
    ) -> Result<Response<Reply>, Cut> {
        let stream_type = if self.ask.stream { EVENTS } else { JSON };
        let skew_ms = manner.date_skew_ms;
        match &rule.deed {
            // The core turns these into refusals.
            Deed::Refuse { .. } => Err(Cut),
            Deed::Respond { status, headers, body } => {
                ticket.planned = Outcome::Failed;
                let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
                let mut response = self.whole(id, status, JSON, body.clone(), skew_ms, ticket);
                response.headers_mut().remove(header::CONTENT_TYPE);
                for (name, value) in headers {
                    response.headers_mut().append(name.clone(), value.clone());
                }
                Ok(response)
            }
            Deed::Answer { chars, max_tokens, finish, content_type } => {
                let chars = chars.unwrap_or(self.shared.scenario.answer.chars);
                let said = self.said(chars, *max_tokens, finish.as_deref());
                let pieces = self.pieces(id, &said, manner);
                let content_type = content_type.clone().unwrap_or(stream_type);
                Ok(self.deliver(id, pieces, manner, content_type, ticket, said.tokens))
            }
            Deed::Drop { at: At::Head } => {
                ticket.planned = Outcome::Dropped;
                ticket.done();
                self.fate.reset();
                Err(Cut)
            }
            Deed::Stall { at: At::Head, for_ms: None } => {
                ticket.planned = Outcome::Faulted;
                // Until the client leaves.
                std::future::pending().await
            }
            Deed::Stall { at: At::Head, for_ms: Some(for_ms) } => {
                self.pause(*for_ms).await;
                Ok(self.answer(id, &said, manner, ticket))
            }
            Deed::Drop { at } => {
                ticket.planned = Outcome::Dropped;
                let (kept, _) = self.pieces(id, &said, manner).cut(*at);
                Ok(self.broken(id, &said, kept, Vec::new(), vec![Step::Reset], manner, ticket))
            }
            Deed::Truncate { at, how } => {
                ticket.planned = Outcome::Faulted;
                let (kept, rest) = self.pieces(id, &said, manner).cut(*at);
                let total: usize = kept.iter().chain(&rest).map(|piece| piece.bytes.len()).sum();
                let mut response = self.broken(id, &said, kept, Vec::new(), vec![Step::Cut], manner, ticket);
                if *how == Framing::ContentLength {
                    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(total));
                }
                Ok(response)
            }
            Deed::Stall { at, for_ms } => {
                let (kept, rest) = self.pieces(id, &said, manner).cut(*at);
                let (stall, rest) = if let Some(for_ms) = for_ms {
                    (Step::WaitMs(*for_ms), rest)
                } else {
                    ticket.planned = Outcome::Faulted;
                    (Step::Forever, Vec::new())
                };
                Ok(self.broken(id, &said, kept, rest, vec![stall], manner, ticket))
            }
            Deed::End { after_chunks } => {
                ticket.planned = Outcome::Faulted;
                let (kept, _) = self.pieces(id, &said, manner).cut(At::Chunks(*after_chunks));
                Ok(self.broken(id, &said, kept, Vec::new(), Vec::new(), manner, ticket))
            }
            Deed::Garble { after_chunks } => {
                ticket.planned = Outcome::Faulted;
                let (mut kept, rest) = self.pieces(id, &said, manner).cut(At::Chunks(*after_chunks));
                kept.push(self.garbage(id, &said));
                Ok(self.broken(id, &said, kept, rest, Vec::new(), manner, ticket))
            }
            Deed::ErrorFrame { after_chunks, kind, body } => {
                ticket.planned = Outcome::Faulted;
                let body = body.clone().unwrap_or_else(|| self.error_body(*kind));
                if !self.ask.stream {
                    // A body cannot hold a frame: the whole 2xx is the error.
                    return Ok(self.whole(id, StatusCode::OK, JSON, body.into(), skew_ms, ticket));
                }
                let (mut kept, _) = self.pieces(id, &said, manner).cut(At::Chunks(*after_chunks));
                let frame = answer::error_frame(self.ask.dialect, &body);
                kept.push(Piece { bytes: frame.into(), text: false });
                Ok(self.broken(id, &said, kept, Vec::new(), Vec::new(), manner, ticket))
            }
        }
    }

    fn error_body(&self, kind: Kind) -> String {
        let about = About {
            kind,
            dialect: self.ask.dialect,
            model: &self.ask.model,
            limit: 0,
            requested: 0,
            per_ms: 0,
            detail: "",
            request_id: "req_simulated",
        };
        Refusal::new(about, Named::default()).body
    }

    /// A frame, or a bit of a body, that is no UTF-8: a replacement character's bytes made wrong.
    fn garbage(&self, id: u64, said: &Said) -> Piece {
        let frame = if self.ask.stream { self.in_dialect(id, said).text_frame("\u{fffd}") } else { "\u{fffd}".into() };
        let mut bytes = frame.into_bytes();
        for byte in &mut bytes {
            if matches!(byte, 0xef | 0xbf | 0xbd) {
                *byte = 0xff;
            }
        }
        Piece { bytes: bytes.into(), text: true }
    }

    /// Pieces, something in between, and what follows it; framed by chunks whatever it is.
    #[expect(clippy::too_many_arguments, reason = "every one of them is a part of the response")]
    fn broken(
        &self,
        id: u64,
        said: &Said,
        kept: Vec<Piece>,
        rest: Vec<Piece>,
        between: Vec<Step>,
        manner: Manner,
        mut ticket: Ticket,
    ) -> Response<Reply> {
        let chunks = kept.iter().chain(&rest).filter(|piece| piece.text).count();
        let sent_chars = chunks.saturating_mul(manner.chunk_chars);
        ticket.sent_tokens = text::tokens(sent_chars).min(said.tokens);
        let mut steps = paced(kept, manner.chunk_latency_ms);
        steps.extend(between);
        steps.extend(paced(rest, manner.chunk_latency_ms));
        let content_type = if self.ask.stream { EVENTS } else { JSON };
        self.stepwise(id, content_type, steps, manner.date_skew_ms, ticket)
    }

    fn whole(
        &self,
        id: u64,
        status: StatusCode,
        content_type: HeaderValue,
        body: Bytes,
        skew_ms: i64,
        mut ticket: Ticket,
    ) -> Response<Reply> {
        ticket.head(status.as_u16());
        let bodiless = body.is_empty() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
        if bodiless {
            // The server asks for no body, so nothing would settle the account.
            ticket.done();
        }
        let reply = Reply::Whole((!bodiless).then_some(body), ticket);
        response(status, reply, self.common_headers(id, content_type, skew_ms))
    }

    fn stepwise(
        &self,
        id: u64,
        content_type: HeaderValue,
        steps: VecDeque<Step>,
        skew_ms: i64,
        ticket: Ticket,
    ) -> Response<Reply> {
        ticket.head(200);
        let reply = Reply::Steps(Steps::new(steps, ticket, Arc::clone(&self.fate)));
        response(StatusCode::OK, reply, self.common_headers(id, content_type, skew_ms))
    }

    fn common_headers(
        &self,
        id: u64,
        content_type: HeaderValue,
        skew_ms: i64,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<> {
        let request_id = match self.ask.dialect {
            Dialect::OpenAi => Some(HeaderName::from_static("x-request-id")),
            Dialect::Anthropic => Some(HeaderName::from_static("request-id")),
            Dialect::Gemini => None,
        };
        // Hexadecimal digits are a header value.
        let request_id = request_id.and_then(|name| Some((name, format!("req_{id:016x}").parse().ok()?)));
        // Without a skew the server's own, cached date will do.
        let date = (skew_ms != 0).then(|| (header::DATE, date(self.shared.clock.now_ms().saturating_add(skew_ms))));
        [Some((header::CONTENT_TYPE, content_type)), request_id, date].into_iter().flatten()
    }
}

fn date(at_ms: i64) -> HeaderValue {
    naming::http_date(at_ms.div_euclid(1_000))
        .parse()
        .unwrap_or(HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}

/// What an answer says.
struct Said {
    text: String,
    tokens: u64,
    finish: String,
}
