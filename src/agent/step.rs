//! What a job does next: its request from what has been said so far, and what follows an ended turn.

use super::response;
use super::transcript::{self, CONTINUATION};
use super::{Body, JobSpec, limits, turns_left};
use crate::failure::{ErrorDocument, codes};
use crate::provider::{Answer, Call, ChatCall, Message, RawCall};
use crate::recovery::Then;
use crate::store::{History, InboxRow, JobState};
use serde_json::json;

/// How an execution ended, as far as the job's next step depends on it.
#[derive(Clone, Debug)]
pub enum Ended<'a> {
    Completed(&'a Answer),
    /// A committed partial: its text, why it was cut (`output_limit` or `stalled`), and what follows.
    Truncated {
        text: &'a str,
        cut: &'a str,
        then: Then,
    },
}

/// What follows.
#[derive(Clone, Debug)]
pub enum Step {
    Final {
        state: JobState,
        result: Option<String>,
        error: Option<String>,
    },
    /// Succeeded, unless somebody told the job something meanwhile: then it has another turn.
    FinalUnlessTold {
        result: Option<String>,
    },
    Turn {
        due_ms: Option<i64>,
        repairs: u32,
        inbox: Vec<InboxRow>,
    },
}

/// The cut of an answer that reached a cap; any other cut is a broken stream.
pub(super) const OUTPUT_LIMIT: &str = "output_limit";

/// What the next turn of a cut answer is asked, where a cap cut it.
const GO_ON_AFTER_CAP: &str = "Your answer reached the length limit and ends in the middle. Go on from exactly where it \
    ends: the next character you write is put directly behind the last one. Repeat nothing and comment on nothing.";
/// Where the connection broke.
const GO_ON_AFTER_STALL: &str = "Your answer was cut off by a broken connection. Go on from exactly where it ends: the \
    next character you write is put directly behind the last one. Repeat nothing and do not mention the interruption.";

/// The job's next request, from its spec and what has been said so far.
#[must_use]
pub fn next_call(spec: &JobSpec, history: &History) -> Call {
    match &spec.body {
        Body::Raw { path, body } => {
            Call::Raw(RawCall { model: spec.model.clone(), path: path.clone(), body: body.clone() })
        }
        Body::Chat { system, messages, options } => Call::Chat(ChatCall {
            model: spec.model.clone(),
            system: system.clone(),
            messages: transcript::messages(messages, history),
            options: (**options).clone(),
            stream: spec.stream,
            // Whoever knows the policy says otherwise.
            may_ask_again: false,
        }),
    }
}

/// The step after an ended turn. `seq` and `repairs` are the ended turn's.
#[must_use]
pub fn next_step(spec: &JobSpec, history: &History, ended: &Ended<'_>, seq: u32, repairs: u32, now_ms: i64) -> Step {
    match ended {
        // Calls of tools that a submitter declared through `extra_body` are theirs to run, and stand in the result.
        Ended::Completed(answer) => {
            let text = job_text(history, &answer.text);
            answered(history, Some(response::result(history, answer, &text)))
        }
        Ended::Truncated { text, then: Then::Accept, .. } => answered(history, response::partial_result(history, text)),
        Ended::Truncated { text, cut, then: Then::Continue { not_before_ms } } => {
            let next = seq.saturating_add(1);
            if let Some(error) = no_further_turn(spec, history, text) {
                let result = response::partial_result(history, text);
                let error = serde_json::to_string(&error).ok();
                return Step::Final { state: JobState::Failed, result, error };
            }
            Step::Turn {
                due_ms: *not_before_ms,
                repairs: repairs.saturating_add(1),
                inbox: vec![continuation(cut, next, now_ms)],
            }
        }
    }
}

/// What follows an answer that is whole. Also where no further turn may be sent: one that was told something it has not
/// read did not succeed, and says so at that turn ([`turn_refused`]).
fn answered(history: &History, result: Option<String>) -> Step {
    // What it was told in the middle of its answer is read now.
    if transcript::holds_back(history) {
        return Step::Turn { due_ms: None, repairs: 0, inbox: Vec::new() };
    }
    Step::FinalUnlessTold { result }
}

/// Asks the turn `seq` to go on from a cut.
pub(super) fn continuation(cut: &str, seq: u32, now_ms: i64) -> InboxRow {
    let prompt = if cut == OUTPUT_LIMIT { GO_ON_AFTER_CAP } else { GO_ON_AFTER_STALL };
    let body = json!({"role": "user", "content": prompt}).to_string();
    InboxRow { seq, kind: CONTINUATION.to_owned(), body, at_ms: now_ms }
}

/// The messages that the job's next turn is sent, its system prompt aside: what has been said so far, in order.
#[must_use]
pub fn transcript(spec: &JobSpec, history: &History) -> Vec<Message> {
    match &spec.body {
        Body::Chat { messages, .. } => transcript::messages(messages, history),
        Body::Raw { .. } => Vec::new(),
    }
}

/// A job's text: the pieces of its last answer, joined byte for byte. `last` is the piece that is not in the history.
#[must_use]
pub fn job_text(history: &History, last: &str) -> String {
    transcript::begun(history) + last
}

/// A turn that may not be sent: the job has had all of its turns, or its transcript has outgrown what is sent again, and
/// there is something that it was told and has not read. The error to fail it with, and the job's result: its last answer.
#[must_use]
pub fn turn_refused(spec: &JobSpec, history: &History) -> Option<(ErrorDocument, Option<String>)> {
    // What a retry took over is sent once, however long it is.
    if history.responses.is_empty() {
        return None;
    }
    let error = if had(history) >= spec.max_turns {
        let what = format!("the job has had all of its {} turns and did not read all that it was told", spec.max_turns);
        Some(ErrorDocument::own(codes::TURN_LIMIT, what))
    } else {
        too_long(history, "")
    };
    error.map(|error| (error, response::last_result(history)))
}

/// Turns that were answered.
fn had(history: &History) -> u32 {
    u32::try_from(history.responses.len()).unwrap_or(u32::MAX)
}

/// What keeps a job from another turn (contract §7: a code of our own has a null class).
fn no_further_turn(spec: &JobSpec, history: &History, last: &str) -> Option<ErrorDocument> {
    if turns_left(spec, history) == 0 {
        let message = format!("the job has had all of its {} turns and its answer is not complete", spec.max_turns);
        return Some(ErrorDocument::own(codes::TURN_LIMIT, message));
    }
    too_long(history, last)
}

fn too_long(history: &History, last: &str) -> Option<ErrorDocument> {
    let bytes = bytes(history).saturating_add(last.len());
    (bytes > limits::TRANSCRIPT_BYTES).then(|| {
        let most = limits::TRANSCRIPT_BYTES;
        let message = format!("the transcript has {bytes} bytes; at most {most} are sent again");
        ErrorDocument::own(codes::TRANSCRIPT_LIMIT, message)
    })
}

/// The bytes of a transcript beyond the job's own input.
pub(super) fn bytes(history: &History) -> usize {
    let said = history.responses.iter().map(|(_, _, response)| response.len());
    let told = history.inbox.iter().map(|row| row.body.len());
    said.chain(told).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::ErrorDocument;
    use crate::store::Usage;
    use proptest::prelude::*;
    use serde_json::Value;

    fn spec(more: &str) -> JobSpec {
        JobSpec::parse(&format!(r#"{{"model":"m","input":"go","system":"s"{more}}}"#)).unwrap()
    }

    fn answer(text: &str) -> Answer {
        Answer {
            text: text.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish_reason: Some("stop".to_owned()),
            usage: Usage::default(),
            provider_model: None,
            request_id: None,
            raw: None,
        }
    }

    fn then(not_before_ms: Option<i64>) -> Then {
        Then::Continue { not_before_ms }
    }

    fn messages(spec: &JobSpec, history: &History) -> Vec<(String, String)> {
        let Call::Chat(call) = next_call(spec, history) else { panic!("a chat") };
        let text = |message: Message| (message.role, message.content.as_str().unwrap_or("?").to_owned());
        call.messages.into_iter().map(text).collect()
    }

    /// Plays a job whose answer arrives in these pieces, each but the last cut.
    fn play(spec: &JobSpec, pieces: &[(&str, &str)], last: &str) -> (History, Step) {
        let mut history = History::default();
        for (n, (text, cut)) in (0_u32..).zip(pieces) {
            let step = next_step(spec, &history, &Ended::Truncated { text, cut, then: then(None) }, n + 1, n, 9);
            let Step::Turn { inbox, repairs, .. } = step else { return (history, step) };
            assert_eq!(repairs, n + 1);
            let document = response::of_partial(text).unwrap_or_default();
            history.responses.push((n + 1, Some((*cut).to_owned()), document));
            history.inbox.extend(inbox);
        }
        let seq = u32::try_from(pieces.len()).unwrap() + 1;
        let step = next_step(spec, &history, &Ended::Completed(&answer(last)), seq, 0, 9);
        (history, step)
    }

    fn result(step: &Step) -> Value {
        let (Step::Final { result: Some(result), .. } | Step::FinalUnlessTold { result: Some(result) }) = step else {
            panic!("a result: {step:?}")
        };
        serde_json::from_str(result).unwrap()
    }

    #[test]
    fn a_first_turn_sends_the_input() {
        let Call::Chat(call) = next_call(&spec(r#","stream":false,"options":{"seed":4}"#), &History::default()) else {
            panic!("a chat")
        };
        assert_eq!((call.model.as_str(), call.system.as_deref(), call.stream), ("m", Some("s"), false));
        assert_eq!((call.options.seed, call.messages.len()), (Some(4), 1));
    }

    #[test]
    fn a_cut_answer_is_continued_with_its_own_prompt() {
        let spec = spec("");
        let (history, step) = play(&spec, &[("Once ", "stalled"), ("upon ", "output_limit")], "a time");
        let seen = messages(&spec, &history);
        let expected = [
            ("user", "go"),
            ("assistant", "Once "),
            ("user", GO_ON_AFTER_STALL),
            ("assistant", "upon "),
            ("user", GO_ON_AFTER_CAP),
        ];
        assert_eq!(seen, expected.map(|(role, text)| (role.to_owned(), text.to_owned())));
        let result = result(&step);
        assert_eq!(
            (&result["text"], &result["truncated"], &result["turns"]),
            (&json!("Once upon a time"), &json!(false), &json!(3))
        );
        assert_eq!(result["finish_reason"], "stop");
    }

    #[test]
    fn a_continuation_waits_for_its_reset() {
        let ended = Ended::Truncated { text: "x", cut: "stalled", then: then(Some(77)) };
        let Step::Turn { due_ms, repairs, inbox } = next_step(&spec(""), &History::default(), &ended, 4, 2, 9) else {
            panic!("a turn")
        };
        assert_eq!((due_ms, repairs, inbox.len()), (Some(77), 3, 1));
        assert_eq!((inbox[0].seq, inbox[0].kind.as_str(), inbox[0].at_ms), (5, "continuation", 9));
    }

    #[test]
    fn an_accepted_cut_succeeds_and_says_that_it_is_cut() {
        let ended = Ended::Truncated { text: "half", cut: "output_limit", then: Then::Accept };
        let step = next_step(&spec(""), &History::default(), &ended, 1, 0, 9);
        assert!(matches!(step, Step::FinalUnlessTold { .. }));
        assert_eq!((&result(&step)["text"], &result(&step)["truncated"]), (&json!("half"), &json!(true)));
    }

    #[test]
    fn a_job_out_of_turns_fails_and_keeps_its_text() {
        let (_, step) = play(&spec(r#","max_turns":2"#), &[("a", "stalled"), ("b", "stalled")], "");
        let Step::Final { state: JobState::Failed, error: Some(error), .. } = &step else { panic!("{step:?}") };
        let error: ErrorDocument = serde_json::from_str(error).unwrap();
        assert_eq!((error.code.as_str(), error.class, error.model_failure), ("turn_limit", None, None));
        assert_eq!(result(&step)["text"], "ab");
    }

    #[test]
    fn a_transcript_that_outgrew_its_limit_fails() {
        let long = "x".repeat(limits::TRANSCRIPT_BYTES + 1);
        let ended = Ended::Truncated { text: &long, cut: "stalled", then: then(None) };
        let Step::Final { error: Some(error), .. } = next_step(&spec(""), &History::default(), &ended, 1, 0, 9) else {
            panic!("too long")
        };
        assert!(error.contains("transcript_limit"));
    }

    #[test]
    fn an_answer_starts_anew_behind_a_completed_one() {
        let history = History {
            responses: vec![
                (1, None, response::of_answer(&answer("first"))),
                (2, Some("stalled".into()), response::of_partial("sec").unwrap()),
            ],
            inbox: vec![
                InboxRow {
                    seq: 2,
                    kind: "message".into(),
                    body: r#"{"role":"user","content":"more"}"#.into(),
                    at_ms: 1,
                },
                continuation("stalled", 3, 1),
            ],
        };
        assert_eq!(job_text(&history, "ond"), "second");
        let seen = messages(&spec(""), &history);
        assert_eq!(
            seen.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["go", "first", "more", "sec", GO_ON_AFTER_STALL]
        );
    }

    #[test]
    fn what_cannot_be_read_hides_no_neighbour() {
        let history = History {
            responses: vec![
                (1, Some("stalled".into()), "{".into()),
                (2, Some("stalled".into()), response::of_partial("b").unwrap()),
            ],
            inbox: vec![
                continuation("stalled", 2, 1),
                InboxRow { seq: 2, kind: "message".into(), body: "nonsense".into(), at_ms: 1 },
                InboxRow { seq: 2, kind: "answer".into(), body: "nonsense".into(), at_ms: 1 },
                continuation("stalled", 3, 1),
            ],
        };
        assert_eq!(job_text(&history, "c"), "bc");
        let seen = messages(&spec(""), &history);
        assert_eq!(
            seen.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["go", GO_ON_AFTER_STALL, "b", GO_ON_AFTER_STALL]
        );
    }

    #[test]
    fn a_raw_job_sends_its_body_and_keeps_the_response() {
        let spec = JobSpec::parse(r#"{"model":"m","raw":{"path":"/v1/x","body":{"a" : 1}}}"#).unwrap();
        let Call::Raw(call) = next_call(&spec, &History::default()) else { panic!("raw") };
        assert_eq!((call.model.as_str(), call.path.as_str(), call.body.as_str()), ("m", "/v1/x", r#"{"a" : 1}"#));
        let raw =
            crate::provider::RawAnswer { status: 200, content_type: None, body: bytes::Bytes::from_static(b"\xff") };
        let said = Answer { raw: Some(raw), finish_reason: None, ..answer("") };
        let step = next_step(&spec, &History::default(), &Ended::Completed(&said), 1, 0, 9);
        assert_eq!(
            result(&step)["raw"],
            json!({"status": 200, "content_type": null, "body": "/w==", "encoding": "base64"})
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_jobs_text_is_its_pieces_joined_wherever_they_were_cut(
            text in any::<String>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let ends = text.char_indices().map(|(at, _)| at).collect::<Vec<_>>();
            let mut cuts = cuts.iter().filter(|_| !ends.is_empty()).map(|cut| ends[cut.index(ends.len())]).collect::<Vec<_>>();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push((&text[from..cut], if cut % 2 == 0 { "stalled" } else { "output_limit" }));
                from = cut;
            }
            let (history, step) = play(&spec(""), &pieces, &text[from..]);
            prop_assert_eq!(job_text(&history, &text[from..]), text.clone());
            let result = result(&step);
            prop_assert_eq!(result["text"].as_str(), Some(text.as_str()));
        }
    }
}
