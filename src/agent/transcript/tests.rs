//! A job played turn by turn, with whatever can come between: cuts, completed answers, messages at any moment, and
//! retries of what has ended.

use super::*;
use crate::agent::{
    Directory, Ended, Entry, JobSpec, Step, again, job_text, next_call, next_step, response, turn_refused,
};
use crate::provider::{Answer, Call};
use crate::recovery::Then;
use crate::store::{JobId, JobRow, JobState, LaneKey, ScopeKey, Usage};
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashMap;

const SPEC: &str = r#"{"model":"m","input":"go","max_turns":10000}"#;

/// What happens next to a job.
#[derive(Clone, Debug)]
enum Event {
    /// A message while the turn waits (deferred as often as one likes), and while it runs.
    ToldWaiting,
    ToldRunning,
    Cut(&'static str),
    Completed,
    Accepted,
    /// It fails or is cancelled, and is retried.
    Retried,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::ToldWaiting),
        2 => Just(Event::ToldRunning),
        3 => Just(Event::Cut("stalled")),
        1 => Just(Event::Cut("output_limit")),
        3 => Just(Event::Completed),
        1 => Just(Event::Accepted),
        1 => Just(Event::Retried),
    ]
}

struct Play {
    spec: JobSpec,
    history: History,
    seq: u32,
    /// Messages put in, and pieces said, in the order of their numbers.
    told: u32,
    said: u32,
    /// The pieces of the answer that is under way.
    pieces: Vec<String>,
    /// Every whole answer.
    answers: Vec<String>,
}

impl Play {
    fn new() -> Self {
        let spec = JobSpec::parse(SPEC).unwrap();
        let (told, said) = (0, 0);
        Self { spec, history: History::default(), seq: 1, told, said, pieces: Vec::new(), answers: Vec::new() }
    }

    fn tell(&mut self, seq: u32) {
        self.told += 1;
        let body = json!({"role": "user", "content": format!("m{}", self.told)}).to_string();
        self.put(InboxRow { seq, kind: "message".into(), body, at_ms: 1 });
    }

    /// As the store does it: in order of `seq`, then of arrival.
    fn put(&mut self, row: InboxRow) {
        self.history.inbox.push(row);
        self.history.inbox.sort_by_key(|row| row.seq);
    }

    fn piece(&mut self) -> String {
        self.said += 1;
        format!("a{};", self.said)
    }

    /// What the next call is sent, by content.
    fn sent(&self) -> Vec<String> {
        let Call::Chat(call) = next_call(&self.spec, &self.history) else { panic!("a chat") };
        call.messages.into_iter().map(|message| message.content.as_str().unwrap().to_owned()).collect()
    }

    fn follow(&mut self, step: Step) {
        match step {
            Step::Turn { inbox, .. } => inbox.into_iter().for_each(|row| self.put(row)),
            // Ended, but that it is told something at the last moment.
            Step::FinalUnlessTold { .. } => self.tell(self.seq + 1),
            Step::Final { .. } => panic!("it has turns left"),
        }
        self.seq += 1;
    }

    fn end_answer(&mut self, last: &str, step: Step) {
        self.pieces.push(last.to_owned());
        let whole = std::mem::take(&mut self.pieces).concat();
        if let Step::FinalUnlessTold { result: Some(result) } = &step {
            let result: Value = serde_json::from_str(result).unwrap();
            assert_eq!(result["text"], whole);
        }
        self.answers.push(whole);
        self.follow(step);
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::ToldWaiting => self.tell(self.seq),
            // The turn's history was read before: what is told now is for the next one.
            Event::ToldRunning => self.tell(self.seq + 1),
            Event::Cut(cut) => {
                let text = self.piece();
                let then = Then::Continue { not_before_ms: None };
                let ended = Ended::Truncated { text: &text, cut, then };
                let step = next_step(&self.spec, &self.as_read(), &ended, self.seq, 0, 1);
                let document = response::of_partial(&text).unwrap();
                self.history.responses.push((self.seq, Some((*cut).to_owned()), document));
                self.pieces.push(text);
                self.follow(step);
            }
            Event::Completed => {
                let text = self.piece();
                let answer = answer(&text);
                assert_eq!(job_text(&self.as_read(), &text), self.pieces.concat() + &text);
                let step = next_step(&self.spec, &self.as_read(), &Ended::Completed(&answer), self.seq, 0, 1);
                self.history.responses.push((self.seq, None, response::of_answer(&answer)));
                self.end_answer(&text, step);
            }
            Event::Accepted => {
                let text = self.piece();
                let ended = Ended::Truncated { text: &text, cut: "output_limit", then: Then::Accept };
                let step = next_step(&self.spec, &self.as_read(), &ended, self.seq, 0, 1);
                let document = response::of_partial(&text).unwrap();
                self.history.responses.push((self.seq, Some("output_limit".into()), document));
                self.end_answer(&text, step);
            }
            Event::Retried => {
                let new = again(&job(JobState::Failed), &self.history, &directory(), 7).unwrap();
                assert!(new.carried.iter().all(|row| row.seq < new.first_seq), "{:?}", new.carried);
                assert!(new.carried.is_sorted_by_key(|row| row.seq));
                self.history = History { responses: Vec::new(), inbox: new.carried };
                self.seq = new.first_seq;
            }
        }
    }

    /// The history as the running turn read it at its claim.
    fn as_read(&self) -> History {
        let inbox = self.history.inbox.iter().filter(|row| row.seq <= self.seq).cloned().collect();
        History { responses: self.history.responses.clone(), inbox }
    }
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

fn directory() -> Directory {
    let account = ScopeKey { provider: "p".into(), account: "a".into(), model: String::new() };
    let entry = Entry { account, adapter: "openai".into(), missing_key: None, policy: "tiered".into() };
    Directory { entries: [("e".to_owned(), entry)].into(), ..Directory::default() }
}

fn job(state: JobState) -> JobRow {
    let scope = ScopeKey { provider: "p".into(), account: "a".into(), model: "m".into() };
    JobRow {
        id: JobId::fresh(),
        state,
        deferred: false,
        lane: LaneKey { queue: "default".into(), tenant: String::new(), scope },
        entry: "e".into(),
        priority: 0,
        labels: Vec::new(),
        spec: SPEC.into(),
        result: None,
        error: None,
        created_ms: 0,
        finished_ms: Some(5),
        deadline_ms: None,
        retry_of: None,
        seq: None,
        due_ms: None,
        executions: None,
        deferrals: None,
        wait_until_ms: None,
        hold: None,
        paused: None,
        queue_paused: None,
        schedule: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes between, nothing is lost and nothing is sent twice, pieces stay together, and each message stands
    /// before exactly the answers that begin after it.
    #[test]
    fn a_transcript_loses_nothing_and_repeats_nothing(events in prop::collection::vec(event(), 0..40)) {
        let mut play = Play::new();
        // By message: how many answers had been begun when it came in.
        let mut begun = HashMap::new();
        for event in &events {
            let before = play.told;
            let waits = matches!(event, Event::ToldWaiting) && play.pieces.is_empty();
            let answers = play.answers.len() + usize::from(!waits);
            play.happen(event);
            if matches!(event, Event::Retried) && play.pieces.is_empty() {
                // The answer that was under way had said nothing: it begins anew, behind what was told meanwhile.
                for answers in begun.values_mut() {
                    *answers = play.answers.len().min(*answers);
                }
            }
            for n in before..play.told {
                begun.insert(format!("m{}", n + 1), answers);
            }
        }
        // The answer under way ends, and with it the last turn has read all.
        play.happen(&Event::Completed);
        let sent = play.sent();
        let answers: Vec<&String> = sent.iter().filter(|text| text.starts_with('a')).collect();
        let expected: Vec<String> = (1..=play.said).map(|n| format!("a{n};")).collect();
        prop_assert_eq!(answers, expected.iter().collect::<Vec<_>>());
        let mut told: Vec<&String> = sent.iter().filter(|text| text.starts_with('m')).collect();
        prop_assert_eq!(told.len(), usize::try_from(play.told).unwrap(), "{:?}", sent);
        told.sort();
        told.dedup();
        prop_assert_eq!(told.len(), usize::try_from(play.told).unwrap());

        // Read the transcript again by what it shows: a piece that is followed by a prompt goes on.
        let mut read = Vec::new();
        let mut whole = String::new();
        for (place, text) in sent.iter().enumerate().skip(1) {
            let prompt = text.starts_with("Your answer");
            if text.starts_with('a') {
                whole += text;
                if !sent.get(place + 1).is_some_and(|next| next.starts_with("Your answer")) {
                    read.push(std::mem::take(&mut whole));
                }
            } else if prompt {
                prop_assert!(sent[place - 1].starts_with('a'), "{:?}", sent);
            } else if let Some(answers) = begun.get(text) {
                prop_assert_eq!(read.len(), *answers, "{} in {:?}", text, sent);
                prop_assert!(whole.is_empty(), "{} stands in the middle of an answer: {:?}", text, sent);
            }
        }
        prop_assert_eq!(read, play.answers);
    }
}

#[test]
fn a_message_amid_a_cut_answer_is_read_when_the_answer_is_whole() {
    let mut play = Play::new();
    play.happen(&Event::Cut("stalled"));
    play.happen(&Event::ToldWaiting);
    let sent = play.sent();
    assert_eq!((sent.len(), sent[1].as_str()), (3, "a1;"));
    assert!(sent[2].starts_with("Your answer was cut off"));
    let answer = answer("a2;");
    let step = next_step(&play.spec, &play.history, &Ended::Completed(&answer), 2, 1, 1);
    assert!(matches!(step, Step::Turn { due_ms: None, repairs: 0, ref inbox } if inbox.is_empty()), "{step:?}");
    play.happen(&Event::Completed);
    assert_eq!(play.sent()[3..], ["a2;".to_owned(), "m1".to_owned()]);
    // Out of turns it does not succeed without having read it: the turn that would read it is refused.
    let spec = JobSpec::parse(r#"{"model":"m","input":"go","max_turns":2}"#).unwrap();
    let had = play.history.clone();
    play.history.responses.truncate(1);
    let step = next_step(&spec, &play.history, &Ended::Completed(&answer), 2, 1, 1);
    assert!(matches!(step, Step::Turn { .. }), "{step:?}");
    assert!(turn_refused(&spec, &play.history).is_none());
    let (error, result) = turn_refused(&spec, &had).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result.unwrap()).unwrap();
    assert_eq!((error.code.as_str(), &result["text"], &result["turns"]), ("turn_limit", &json!("a1;a2;"), &json!(2)));
}
