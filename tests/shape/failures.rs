//! `docs/failures`: a page for every code and class, and nothing on it that the code does not do.

use crate::pages::{blocks, files, quoted, read, source, table};
use reprieve::duration;
use reprieve::failure::capture::CaptureInput;
use reprieve::failure::{Cause, Class, Ending, ErrorDocument, Failure, Reach, Receipt, Rules, codes};
use reprieve::provider::capture;
use reprieve::recovery::{Decision, Delivery, OnTruncated, Policy, Situation, Spoken, Then, hold_until, recover};
use std::collections::BTreeSet;
use std::sync::LazyLock;

const DIR: &str = "docs/failures";
/// When the failures of the pages were received.
const NOW_MS: i64 = 1_790_000_000_000;
static RULES: LazyLock<Rules> = LazyLock::new(Rules::embedded);

/// Causes that have a page of their own, because their class does not tell what is done about them.
const CAUSES: [Cause; 3] = [Cause::OutputLimit, Cause::Incomplete, Cause::Deadline];

fn page_of_model(word: &str) -> String {
    format!("{DIR}/{}/{word}.md", codes::MODEL_INCOMPLETE)
}

#[test]
fn every_code_and_class_has_its_page_and_every_page_is_in_the_index() {
    let of_codes = codes::ALL.iter().map(|code| format!("{DIR}/{code}.md"));
    let of_classes = Class::ALL.iter().map(|class| page_of_model(class.as_str()));
    let of_causes = CAUSES.iter().map(|cause| page_of_model(cause.as_str()));
    let due: BTreeSet<String> = of_codes.chain(of_classes).chain(of_causes).collect();
    let index = format!("{DIR}/README.md");
    let there: BTreeSet<String> = files(DIR, ".md").into_iter().filter(|page| *page != index).collect();
    assert_eq!(there, due, "left: the pages; right: what they should be");
    let text = read(&index);
    for page in &due {
        let link = page.strip_prefix("docs/failures/").unwrap();
        assert!(text.contains(&format!("]({link})")), "{index} does not link {link}");
    }
    for cause in Cause::ALL {
        assert!(
            table(&index, &text, &["cause"]).rows.iter().any(|row| row[0] == format!("`{}`", cause.as_str())),
            "{index} does not say what the cause {} is",
            cause.as_str()
        );
    }
}

#[test]
fn every_page_answers_the_same_questions() {
    for page in files(DIR, ".md") {
        // The two that lead to other pages.
        if page.ends_with("/README.md") || page == format!("{DIR}/{}.md", codes::MODEL_INCOMPLETE) {
            continue;
        }
        let text = read(&page);
        let recognised = pages_of_cases().contains(&page).then_some("How it is recognised");
        let due = ["What Reprieve does", "What it looks like", "What you can do", "What an operator can do"];
        let due: Vec<&str> = recognised.into_iter().chain(due).collect();
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, due, "{page}");
    }
}

#[test]
fn pages_say_how_jobs_that_are_sent_at_most_once_fare() {
    let job = r#"{"model":"m","input":"x","delivery":"at_most_once"}"#;
    assert_eq!(reprieve::agent::JobSpec::parse(job).map(|spec| spec.delivery), Ok(Delivery::AtMostOnce));
    assert!(read(&format!("{DIR}/README.md")).contains("\n## Jobs that are sent at most once\n"));
    for page in pages_of_cases() {
        let text = read(&page);
        let linked = text.contains("](../README.md#jobs-that-are-sent-at-most-once)");
        assert_eq!(linked, text.contains("| `at_most_once` |"), "{page}: where its rows are explained");
    }
    for code in [codes::WORKER_LOST, codes::WORKER_DRAINED] {
        assert!(read(&format!("{DIR}/{code}.md")).contains("`at_most_once`"), "{code}: what it does to such a job");
    }
}

#[test]
fn statuses_are_read_as_the_index_says() {
    let index = format!("{DIR}/README.md");
    let mut seen = BTreeSet::new();
    for row in table(&index, &read(&index), &["HTTP status", "class", "retried"]).rows {
        let (class, retried) = (quoted(&row[1]).remove(0), row[2] == "yes");
        for part in row[0].split(", ") {
            let (from, to) = part.split_once('–').unwrap_or((part, part));
            for status in from.parse::<u16>().unwrap()..=to.parse::<u16>().unwrap() {
                let case = Case::of(&index, &format!("{{\"http_status\":{status}}}"), "—");
                let is = (case.failure.class.as_str(), case.failure.retryable);
                assert_eq!(is, (class.as_str(), retried), "{index}: {status}");
                assert!(seen.insert(status), "{index}: {status} stands there twice");
            }
        }
    }
    assert_eq!(seen, (300..=599).collect(), "{index} says of every status how it is read");
}

#[test]
fn every_decision_is_in_the_index() {
    let index = format!("{DIR}/README.md");
    let shown =
        table(&index, &read(&index), &["decision"]).rows.iter().flat_map(|row| quoted(&row[0])).collect::<Vec<_>>();
    let every = [
        Decision::RetryInPlace { wait_ms: 0 },
        Decision::Defer { until_ms: 0 },
        Decision::Requeue { until_ms: 0 },
        Decision::CommitPartial { then: Then::Accept },
        Decision::Fail,
        Decision::Stop,
    ];
    // Lists them all: a new one does not compile here.
    for decision in every {
        match decision {
            Decision::RetryInPlace { .. }
            | Decision::Defer { .. }
            | Decision::Requeue { .. }
            | Decision::CommitPartial { .. }
            | Decision::Fail
            | Decision::Stop => {}
        }
    }
    assert_eq!(shown, every.map(|decision| decision.as_str().to_owned()));
}

#[test]
fn codes_are_written_in_one_place() {
    let declared = source("src/failure/codes.rs").matches("pub const ").count() - 1;
    assert_eq!(declared, codes::ALL.len(), "`failure::codes::ALL` lists every code");
    let mut wrong = Vec::new();
    for file in files("src", ".rs") {
        let text = source(&file);
        // What a simulator plays and a rule reads are vendors' words.
        if file == "src/failure/codes.rs" || file.starts_with("src/sim") {
            continue;
        }
        let said = codes::ALL.iter().filter(|code| text.contains(&format!("\"{code}\"")));
        wrong.extend(said.map(|code| format!("{file}: \"{code}\" is written as failure::codes::…")));
        for call in ["ErrorDocument::own(", "own_error("] {
            for rest in text.split(call).skip(1).filter(|rest| rest.trim_start().starts_with('"')) {
                let code: String = rest.trim_start().chars().skip(1).take_while(|letter| *letter != '"').collect();
                wrong.push(format!("{file}: \"{code}\" is no constant of failure::codes yet"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// A case of a page: a captured failure, and the moment it was met at.
struct Case {
    input: CaptureInput,
    failure: Failure,
    situation: Situation,
}

impl Case {
    /// `met`: words separated by commas, or `—`.
    fn of(page: &str, line: &str, met: &str) -> Self {
        let value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{page}: {line}: {error}"));
        let input = CaptureInput::parse(&value).unwrap_or_else(|error| panic!("{page}: {line}: {error}"));
        let mut situation = Situation {
            now_ms: NOW_MS,
            sends: input.attempts.unwrap_or(1).max(1),
            executions: 0,
            barren: 0,
            turn_left_ms: None,
            deadline_ms: input.deadline_ms,
            spoken: if input.spoken { Spoken::Text } else { Spoken::Nothing },
            repairs: 0,
            deferrals: 0,
            waiting_since_ms: None,
            delivery: Delivery::AtLeastOnce,
            structured_output: false,
            on_truncated: OnTruncated::Continue,
            jitter: 0.0,
        };
        let mut ending = capture::ending(&input);
        for word in met.split(", ") {
            let count = || word.split(' ').find_map(|part| part.parse::<u32>().ok()).unwrap();
            match word {
                "—" => {}
                "`at_most_once`" => situation.delivery = Delivery::AtMostOnce,
                "`on_truncated` is `accept`" => situation.on_truncated = OnTruncated::Accept,
                "`on_truncated` is `fail`" => situation.on_truncated = OnTruncated::Fail,
                "with a `response_format`" => situation.structured_output = true,
                "cut by the deadline" => ending = Some(Ending::Deadline),
                _ if word.starts_with("execution ") => situation.executions = count() - 1,
                _ if word.starts_with("refused ") && word.ends_with(" times before") => situation.barren = count(),
                _ if word.starts_with("deferred ") && word.ends_with(" times before") => situation.deferrals = count(),
                _ if word.starts_with("repaired ") && word.ends_with(" times before") => situation.repairs = count(),
                _ => panic!("{page}: what is `{word}`?"),
            }
        }
        let receipt = Receipt {
            received_ms: NOW_MS,
            send_took_ms: 0,
            provider: input.provider.clone(),
            account: input.account.clone(),
            model: input.model.clone(),
            attempts: input.attempts,
            redact_vendor_messages: true,
        };
        let ending = ending.unwrap_or_else(|| panic!("{page}: {line}: nothing failed"));
        Self { failure: Failure::read(&ending, &receipt, &RULES), input, situation }
    }

    fn decided(&self, policy: &Policy) -> String {
        match recover(&self.failure, &self.situation, policy) {
            Decision::RetryInPlace { wait_ms } => format!("`retry_in_place` after {}", duration::write(wait_ms)),
            Decision::Defer { until_ms } => format!("`defer` for {}", duration::write(until_ms - NOW_MS)),
            Decision::Requeue { until_ms } => format!("`requeue` for {}", duration::write(until_ms - NOW_MS)),
            Decision::CommitPartial { then: Then::Accept } => "`commit_partial`, accept".to_owned(),
            Decision::CommitPartial { then: Then::Continue { not_before_ms } } => {
                let after_ms = not_before_ms.map_or(0, |at_ms| at_ms - NOW_MS);
                format!("`commit_partial`, go on after {}", duration::write(after_ms))
            }
            Decision::Fail => "`fail`".to_owned(),
            Decision::Stop => "`stop`".to_owned(),
        }
    }

    /// What is closed, and for how long.
    fn holds(&self, policy: &Policy) -> String {
        let Some(until_ms) = hold_until(&self.failure, &self.situation, policy) else { return "—".to_owned() };
        let whom = match self.failure.reach {
            Reach::Account => "account",
            Reach::Model => "model",
        };
        format!("{whom}, {}", duration::write(until_ms - NOW_MS))
    }
}

/// The pages that are about a model call: they have cases.
fn pages_of_cases() -> Vec<String> {
    let mut pages = files(&format!("{DIR}/{}", codes::MODEL_INCOMPLETE), ".md");
    pages.push(format!("{DIR}/{}.md", codes::MODEL_CANCELLED));
    pages
}

#[test]
fn pages_say_what_the_reading_and_the_decision_are() {
    let mut wrong = Vec::new();
    for page in pages_of_cases() {
        let text = read(&page);
        let captured = blocks(&text, "jsonl").concat();
        let lines: Vec<&str> = captured.lines().collect();
        let shown = table(&page, &text, &["", "what came", "met", "`tiered`", "`strict`", "what is held"]);
        assert_eq!(lines.len(), shown.rows.len(), "{page}: one line of JSON a row");
        let mut cases = Vec::new();
        for (n, (row, line)) in shown.rows.iter().zip(lines).enumerate() {
            assert_eq!(row[0], (n + 1).to_string(), "{page}");
            let case = Case::of(&page, line, &row[2]);
            let should =
                [case.decided(&Policy::tiered()), case.decided(&Policy::strict()), case.holds(&Policy::tiered())];
            if row[2] == "—" {
                let answered = capture::classify(&case.input, &RULES, &Policy::tiered(), NOW_MS).recovery;
                assert!(
                    should[0].starts_with(&format!("`{}`", answered.action)),
                    "{page}: row {}: {answered:?}",
                    n + 1
                );
            }
            if row[3..] != should {
                wrong.push(format!("{page}: row {}: | {} |", n + 1, should.join(" | ")));
            }
            cases.push(case);
        }
        // Every pair of class and cause that the cases show is the page's, and the other way round.
        let said = table(&page, &text, &["", ""]);
        for (name, values) in [
            ("code", cases.iter().map(|case| case.failure.document().code).collect::<BTreeSet<_>>()),
            ("class", cases.iter().map(|case| case.failure.class.as_str().to_owned()).collect()),
            ("cause", cases.iter().map(|case| case.failure.cause.as_str().to_owned()).collect()),
            ("retryable", cases.iter().map(|case| case.failure.retryable.to_string()).collect()),
        ] {
            let row = said.rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{page}: no row {name}"));
            let is: BTreeSet<String> = quoted(&row[1]).into_iter().collect();
            if is != values {
                wrong.push(format!("{page}: {name} is {values:?}"));
            }
        }
        let document = serde_json::to_value(cases[0].failure.document()).unwrap();
        let example = serde_json::from_str::<serde_json::Value>(&blocks(&text, "json")[0]);
        if example.ok().as_ref() != Some(&document) {
            wrong.push(format!("{page}: the example of the first row is {document}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_are_error_documents_of_their_codes() {
    for code in codes::ALL {
        let page = format!("{DIR}/{code}.md");
        let text = read(&page);
        let example: serde_json::Value = serde_json::from_str(&blocks(&text, "json")[0]).unwrap();
        let document: ErrorDocument = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&document).unwrap(), example, "{page}");
        assert_eq!((document.code.as_str(), document.extra.len()), (code, 0), "{page}");
        let said = table(&page, &text, &["", ""]);
        let value = |name: &str| {
            let row = said.rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{page}: no row {name}"));
            quoted(&row[1])
        };
        assert_eq!(value("code"), [code], "{page}");
        assert!(value("retryable").contains(&document.retryable.to_string()), "{page}");
        if code == codes::MODEL_INCOMPLETE || code == codes::MODEL_CANCELLED {
            assert!(document.model_failure.is_some_and(|record| !record.is_unknown()), "{page}");
            continue;
        }
        // A code of our own has neither class nor record (contract §7), and is written where the page says.
        assert_eq!((document.class, document.model_failure), (None, None), "{page}");
        let constant = format!("codes::{}", code.to_uppercase());
        let writers = value("written by");
        assert!(!writers.is_empty(), "{page}: who writes it?");
        for writer in &writers {
            assert!(source(writer).contains(&constant), "{page}: {writer} does not write it");
        }
        let sentence = document.message.split(['`', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).next().unwrap();
        assert!(
            writers.iter().any(|file| source(file).contains(sentence.trim_end())),
            "{page}: no source says `{sentence}`"
        );
    }
}
