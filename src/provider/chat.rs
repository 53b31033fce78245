//! A chat turn through genai, streamed or not.
//!
//! genai is asked for one thing at a time and believed only as far as the wire bears it out: an error frame it dropped,
//! an end it invented and a success without a finish are read from [`Sink`] and from the captured body instead.

use super::request::Prepared;
use super::sink::{Sink, UNDER_WAY};
use super::{Answer, Broken, ChatCall, Heard, Progress, Provider, content};
use crate::clock::Clock;
use crate::failure::{self, Ending, Fault, Finish, frame};
use crate::store::Usage;
use futures::Stream as _;
use genai::chat::{ChatStream, ChatStreamEvent, StopReason, StreamEnd, ToolCall};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// The longest answer text that is kept, in bytes; one that goes on is cut as a breach of contract.
pub const MAX_ANSWER_TEXT: usize = 64 * 1024 * 1024;

/// How long a stream may go on after its finish reason: only its token count and its mark of the end are due.
const TAIL: Duration = Duration::from_secs(5);

/// A turn that broke, with what its provider had reported until then.
type Outcome = Result<Answer, Box<Broken>>;

/// What came of one look at the stream.
enum Step {
    Event(ChatStreamEvent),
    /// genai raised an error.
    Raised(genai::Error),
    /// An error frame crossed the wire, whatever genai makes of it.
    ErrorFrame,
    Over,
}

impl Provider {
    pub(super) async fn send_chat(
        &self,
        call: &ChatCall,
        clock: &Clock,
        heard: &mut Heard,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Outcome {
        if !call.stream {
            return self.send_plain(call, clock, heard, tell).await;
        }
        match self.send_streamed(call, clock, heard, tell).await? {
            Some(answer) => Ok(answer),
            // Not one frame: whatever the body is, only a call without a stream can read it.
            None => self.send_plain(call, clock, heard, tell).await,
        }
    }

    /// `None`: the stream ended without one frame, and may be asked for again.
    async fn send_streamed(
        &self,
        call: &ChatCall,
        clock: &Clock,
        heard: &mut Heard,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Option<Answer>, Box<Broken>> {
        let sink = Sink::default();
        let (target, Prepared { request, mut options }) = self.prepare(call)?;
        let timeouts = self.timeouts(&call.model);
        options.stream_header_timeout = Some(super::client::millis(timeouts.headers_ms));
        options.stream_read_timeout = Some(super::client::millis(timeouts.read_ms));
        options = options.with_raw_frame_sink(sink.clone());
        let client = self.genai(&call.model)?;
        let mut stream = match client.exec_chat_stream(target, request, Some(&options)).await {
            Ok(response) => response.stream,
            Err(error) => return Err(Ending::Fault(Fault::of(&error)).into()),
        };
        heard.sends += 1;
        let mut turn = Turn { clock, heard, tell, sink, answered: false, reasoning: String::new(), tools: Vec::new() };
        let ended = turn.follow(&mut stream).await;
        // What is left of the connection goes first: the answer may be looked at for long.
        drop(stream);
        turn.conclude(ended, call.may_ask_again)
    }

    async fn send_plain(
        &self,
        call: &ChatCall,
        clock: &Clock,
        heard: &mut Heard,
        tell: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Outcome {
        let (target, Prepared { request, mut options }) = self.prepare(call)?;
        options.capture_raw_body = Some(true);
        let client = self.genai(&call.model)?;
        heard.sends += 1;
        let read_ms = self.timeouts(&call.model).read_ms;
        let response = super::within(read_ms, async {
            client.exec_chat(target, request, Some(&options)).await.map_err(|error| Ending::Fault(of_plain(error)))
        })
        .await?;
        heard.first_byte_ms.get_or_insert_with(|| clock.now_ms());
        let body = response.captured_raw_body.unwrap_or_default();
        let usage = content::merge(content::usage(&body), of_genai_usage(&response.usage));
        let provider_model = content::model(&body).map(str::to_owned);
        let broken = |ending| Box::new(Broken { ending, usage, provider_model: provider_model.clone() });
        if frame::is_error_body(&body) {
            return Err(broken(Ending::Fault(Fault::Response(frame::fault(body)))));
        }
        tell(Progress::Answered);
        let text = content::body_text(&body).unwrap_or_else(|| response.content.texts().concat());
        let tool_calls: Vec<Value> = response.content.tool_calls().into_iter().map(tool_call).collect();
        let reasoning = response.reasoning_content.filter(|reasoning| !reasoning.is_empty());
        heard.tool_call = !tool_calls.is_empty();
        let word = frame::finish_reason(&body).or_else(|| response.stop_reason.map(|reason| reason.raw().to_owned()));
        heard.finish_reason = word.filter(|word| !UNDER_WAY.contains(&word.as_str()));
        if !text.is_empty() {
            tell(Progress::Text(&text));
            heard.text.push_str(&text);
        }
        let silent = text.is_empty() && tool_calls.is_empty() && reasoning.is_none();
        end_of(heard.finish_reason.as_deref(), silent).map_err(broken)?;
        Ok(Answer {
            text,
            reasoning,
            tool_calls,
            finish_reason: heard.finish_reason.clone(),
            usage,
            provider_model,
            request_id: None,
            raw: None,
        })
    }
}

/// One streamed turn as it is heard.
struct Turn<'a> {
    clock: &'a Clock,
    heard: &'a mut Heard,
    tell: &'a mut (dyn FnMut(Progress<'_>) + Send),
    sink: Sink,
    answered: bool,
    reasoning: String,
    /// Tool calls by id, each as far as it got; genai repeats a call with each of its chunks.
    tools: Vec<(String, Value)>,
}

/// How a stream stopped, before it is judged.
enum Stopped {
    /// It ended, with genai's final event or without.
    Over(Option<Box<StreamEnd>>),
    Broke(Fault),
    ErrorFrame,
}

impl Turn<'_> {
    async fn follow(&mut self, stream: &mut ChatStream) -> Stopped {
        let mut tail_ends: Option<Instant> = None;
        loop {
            let step = if self.heard.finish_reason.is_some() {
                let ends = *tail_ends.get_or_insert_with(|| Instant::now() + TAIL);
                match tokio::time::timeout_at(ends, self.step(stream)).await {
                    Ok(step) => step,
                    Err(_) => return Stopped::Over(None),
                }
            } else {
                self.step(stream).await
            };
            match step {
                Step::Event(ChatStreamEvent::End(end)) => return Stopped::Over(Some(Box::new(end))),
                Step::Event(event) => {
                    if let Err(fault) = self.take_in(event) {
                        return Stopped::Broke(fault);
                    }
                }
                Step::ErrorFrame => return Stopped::ErrorFrame,
                // A frame cut by the stream's end is that end.
                Step::Raised(error) if cut_short(&error) => return Stopped::Over(None),
                Step::Raised(error) => {
                    if !self.harmless(&error) {
                        return Stopped::Broke(Fault::of(&error));
                    }
                    if let Err(fault) = self.take_last_frame() {
                        return Stopped::Broke(fault);
                    }
                }
                Step::Over => return Stopped::Over(None),
            }
        }
    }

    /// The stream's next event, looked at through the sink after every poll: genai may pass over a frame in silence.
    async fn step(&mut self, stream: &mut ChatStream) -> Step {
        poll_fn(|cx| {
            let polled = Pin::new(&mut *stream).poll_next(cx);
            let (any, frames, error, finish) =
                self.sink.with(|seen| (seen.any, seen.frames, seen.error.is_some(), seen.finish.is_some()));
            if any && self.heard.first_byte_ms.is_none() {
                self.heard.first_byte_ms = Some(self.clock.now_ms());
            }
            if error {
                return Poll::Ready(Step::ErrorFrame);
            }
            if frames > 0 && !self.answered {
                self.answered = true;
                (self.tell)(Progress::Answered);
            }
            if finish && self.heard.finish_reason.is_none() {
                self.heard.finish_reason = self.sink.with(|seen| seen.finish.clone());
                if polled.is_pending() {
                    // The wait has become a shorter one.
                    return Poll::Ready(Step::Event(ChatStreamEvent::Heartbeat));
                }
            }
            match polled {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(Step::Over),
                Poll::Ready(Some(Ok(event))) => Poll::Ready(Step::Event(event)),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Step::Raised(error)),
            }
        })
        .await
    }

    fn take_in(&mut self, event: ChatStreamEvent) -> Result<(), Fault> {
        match event {
            ChatStreamEvent::Chunk(chunk) => self.say(&chunk.content)?,
            ChatStreamEvent::ReasoningChunk(chunk) => self.reasoning.push_str(&chunk.content),
            ChatStreamEvent::ToolCallChunk(chunk) => {
                self.heard.tool_call = true;
                let (id, call) = (chunk.tool_call.call_id.clone(), tool_call(&chunk.tool_call));
                match self.tools.iter_mut().find(|(known, _)| *known == id) {
                    Some((_, known)) => *known = call,
                    None => self.tools.push((id, call)),
                }
            }
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::End(_) => {}
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        if self.heard.text.len() + text.len() > MAX_ANSWER_TEXT {
            return Err(super::terminal_fault("the answer exceeds the longest text that is kept"));
        }
        self.heard.text.push_str(text);
        (self.tell)(Progress::Text(text));
        Ok(())
    }

    /// Whether genai took for an error what is none by the wire: it stumbles over `"error": null`, and over a frame of
    /// Gemini's that has a token count and no candidate.
    fn harmless(&self, error: &genai::Error) -> bool {
        let genai::Error::ChatResponse { body, .. } = error else { return false };
        let invented = *body == json!({ "finishReason": null, "usageMetadata": null });
        self.sink.with(|seen| {
            seen.error.is_none()
                && seen.last.as_ref().is_some_and(|last| invented || last.get("error").is_some_and(Value::is_null))
        })
    }

    /// Takes in what genai dropped with such a frame.
    fn take_last_frame(&mut self) -> Result<(), Fault> {
        let Some(last) = self.sink.with(|seen| seen.last.take()) else { return Ok(()) };
        self.heard.tool_call |= !content::tool_deltas(&last).is_empty();
        self.reasoning.push_str(content::delta_reasoning(&last).unwrap_or_default());
        self.say(&content::delta_text(&last).unwrap_or_default())
    }

    /// Judges the stream by what was heard. `Ok(None)`: not one frame came and it may be asked for again.
    fn conclude(self, stopped: Stopped, may_ask_again: bool) -> Result<Option<Answer>, Box<Broken>> {
        let Self { heard, sink, reasoning, tools, .. } = self;
        let (frames, error, usage, provider_model, wire_tools) = sink
            .with(|seen| (seen.frames, seen.error.take(), seen.usage, seen.provider_model.clone(), seen.tool_calls()));
        let end = match &stopped {
            Stopped::Over(Some(end)) => Some(end),
            _ => None,
        };
        let usage = end
            .and_then(|end| end.captured_usage.as_ref())
            .map_or(usage, |found| content::merge(usage, of_genai_usage(found)));
        let broken = |ending| Box::new(Broken { ending, usage, provider_model: provider_model.clone() });
        if let Some(error) = error {
            return Err(broken(Ending::Fault(Fault::Response(frame::fault(error)))));
        }
        if heard.finish_reason.is_none() {
            let word = end.and_then(|end| end.captured_stop_reason.as_ref()).map(StopReason::raw);
            heard.finish_reason = word.filter(|word| !UNDER_WAY.contains(word)).map(str::to_owned);
        }
        match stopped {
            // After a finish reason nothing that breaks takes the answer back.
            Stopped::Broke(fault) if heard.finish_reason.is_none() => return Err(broken(Ending::Fault(fault))),
            Stopped::Over(_) if frames == 0 && heard.finish_reason.is_none() && may_ask_again => return Ok(None),
            Stopped::Over(_) | Stopped::Broke(_) | Stopped::ErrorFrame => {}
        }
        let tool_calls =
            if wire_tools.is_empty() { tools.into_iter().map(|(_, call)| call).collect() } else { wire_tools };
        let silent = heard.text.is_empty() && reasoning.is_empty() && tool_calls.is_empty();
        end_of(heard.finish_reason.as_deref(), silent).map_err(broken)?;
        Ok(Some(Answer {
            text: heard.text.clone(),
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            tool_calls,
            finish_reason: heard.finish_reason.clone(),
            usage,
            provider_model,
            request_id: None,
            raw: None,
        }))
    }
}

/// Whether an answer that stopped is complete. Words that end every kind of answer may end an empty one; an unknown
/// word completes only an answer that has content.
fn end_of(finish: Option<&str>, silent: bool) -> Result<(), Ending> {
    let known =
        |word: &str| !matches!(StopReason::from(word.to_owned()), StopReason::Other(_) | StopReason::MaxTokens(_));
    match finish {
        None => Err(Ending::Incomplete),
        Some(word) if failure::finish(word) != Finish::Complete => Err(Ending::Finish { reason: word.to_owned() }),
        Some(word) if silent && !known(word) => Err(Ending::Incomplete),
        Some(_) => Ok(()),
    }
}

/// Whether genai failed because the stream ended inside a frame, or inside a character of one: what it then complains
/// about is that the text stops too early, not that it is wrong.
fn cut_short(error: &genai::Error) -> bool {
    match error {
        genai::Error::StreamParse { serde_error, .. } => serde_error.is_eof(),
        genai::Error::WebStream { error, .. } => error
            .downcast_ref::<std::string::FromUtf8Error>()
            .is_some_and(|error| error.utf8_error().error_len().is_none()),
        _ => false,
    }
}

/// genai's failure to read a body that says it is an error is that error.
fn of_plain(error: genai::Error) -> Fault {
    match error {
        genai::Error::ChatResponseGeneration { response_body, .. } if frame::is_error_body(&response_body) => {
            Fault::Response(frame::fault(*response_body))
        }
        other => Fault::of(&other),
    }
}

fn of_genai_usage(usage: &genai::chat::Usage) -> Usage {
    Usage {
        input_tokens: usage.prompt_tokens.map(i64::from),
        output_tokens: usage.completion_tokens.map(i64::from),
        total_tokens: usage.total_tokens.map(i64::from),
    }
}

/// A tool call as it is kept; arguments that are JSON in a text are read.
fn tool_call(call: &ToolCall) -> Value {
    let arguments = match &call.fn_arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        other => other.clone(),
    };
    json!({ "id": call.call_id, "name": call.fn_name, "arguments": arguments })
}
