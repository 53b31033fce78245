//! One refusal told whole: what was heard, what was selected, what came of it, each with its reason. Rows in, a document
//! out; [`refusal_of`] alone asks the store. Nothing is decided here.

use super::shapes::{Heard, Hold, Refusal, Source, Tested};
use super::words;
use crate::duration;
use crate::failure::Verdict;
use crate::store::{self, HoldRow, ResetRow, SendKey, Store, TurnView};

/// One refusal, asked of the store. `None`: there is none.
///
/// # Errors
/// When the database does not serve.
pub async fn refusal_of<S: Store>(store: &S, key: SendKey) -> store::Result<Option<Refusal>> {
    let Some(row) = store.reset(key).await? else { return Ok(None) };
    let hold = match row.hold {
        Some(hold) => store.hold(hold).await?,
        None => None,
    };
    let test = match row.test {
        Some(test) => store.turns(test.job_id).await?,
        None => Vec::new(),
    };
    Ok(Some(refusal(row, hold, &test, store.clock().now_ms())))
}

/// The document of a refusal. `hold` is the one that it opened or dated, `test` the records of the job whose send was the
/// first after it.
#[must_use]
pub fn refusal(row: ResetRow, hold: Option<HoldRow>, test: &[TurnView], now_ms: i64) -> Refusal {
    let tested = tested(&row, test);
    let text = verdict(&row, tested.as_ref(), now_ms);
    let evidence = row.evidence;
    let received_ms = evidence.received_ms;
    let arithmetic = arithmetic(received_ms, evidence.reset_at_ms, evidence.skew_ms, evidence.resume_at_ms);
    let mut candidates: Vec<Heard> = evidence
        .candidates
        .into_iter()
        .map(|candidate| Heard { delta_ms: candidate.at_ms.map(|at_ms| at_ms.saturating_sub(received_ms)), candidate })
        .collect();
    // Stable: the others keep the order in which they were read.
    candidates.sort_by_key(|heard| heard.candidate.verdict != Verdict::Selected);
    Refusal {
        text,
        job_id: row.key.job_id,
        fence: row.key.fence,
        n: row.key.n,
        queue: row.lane.queue,
        tenant: Some(row.lane.tenant).filter(|tenant| !tenant.is_empty()),
        scope: row.lane.scope.into(),
        received_ms,
        cause: evidence.cause,
        kind: evidence.limit_kind,
        rule: evidence.rule,
        rules_version: evidence.rules_version,
        candidates,
        source: evidence.source_kind.zip(evidence.source_name).map(|(kind, name)| Source { kind, name }),
        raw: evidence.raw,
        reset_at_ms: evidence.reset_at_ms,
        skew_ms: evidence.skew_ms,
        resume_at_ms: evidence.resume_at_ms,
        arithmetic,
        decision: row.decision,
        hold: hold.map(Hold::from),
        tested,
        word: row.word,
        again_by_ms: row.again_by_ms,
    }
}

/// How the resume instant came of the named reset.
fn arithmetic(received_ms: i64, reset_at_ms: Option<i64>, skew_ms: i64, resume_at_ms: Option<i64>) -> String {
    let received = words::exact(received_ms);
    let (Some(reset_at_ms), Some(resume_at_ms)) = (reset_at_ms, resume_at_ms) else {
        return format!("received at {received}; no reset was named");
    };
    let after = duration::format(reset_at_ms.saturating_sub(received_ms));
    let skew = match skew_ms {
        0 => "the clocks count as equal".to_owned(),
        skew_ms => format!("our clock is {} ahead", duration::format(skew_ms)),
    };
    let (named, resume) = (words::exact(reset_at_ms), words::exact(resume_at_ms));
    format!("received at {received}; named {named}, {after} later; {skew}: on our clock {resume}")
}

fn tested(row: &ResetRow, records: &[TurnView]) -> Option<Tested> {
    let at_ms = row.tested_ms?;
    let send = row.test.and_then(|key| {
        let record = records.iter().find(|record| record.fence == key.fence)?;
        record.sends.iter().find(|send| send.n == key.n)
    });
    Some(Tested {
        send: row.test,
        at_ms,
        lateness_ms: row.lateness_ms,
        outcome: send.map(|send| send.outcome.clone()),
        http_status: send.and_then(|send| send.http_status),
    })
}

/// The verdict in one sentence.
fn verdict(row: &ResetRow, tested: Option<&Tested>, now_ms: i64) -> String {
    let provider = &row.lane.scope.provider;
    let evidence = &row.evidence;
    let named = match (evidence.reset_at_ms, &evidence.source_name) {
        (Some(at_ms), Some(name)) => {
            let raw = evidence.raw.as_ref().map_or_else(String::new, |raw| format!(": {raw}"));
            format!("{provider} named {} by `{name}{raw}`", words::instant(at_ms, now_ms))
        }
        (Some(at_ms), None) => format!("{provider} named {}", words::instant(at_ms, now_ms)),
        (None, _) => format!("{provider} named no reset"),
    };
    let late = tested.and_then(|tested| tested.lateness_ms).map_or_else(String::new, |ms| {
        let word = if ms < 0 { "early" } else { "late" };
        format!(", {} {word}", duration::format(ms.saturating_abs()))
    });
    let outcome = match row.word.as_str() {
        "kept" => format!("and kept its word: the first send after it was not refused{late}"),
        "refused_again" => {
            let again = row
                .again_by_ms
                .map_or_else(String::new, |ms| format!("; the next reset was {} later", duration::format(ms)));
            format!("and refused again: the first send after it was refused{late}{again}")
        }
        "released" => format!("and was not tested: its hold was released by hand before it{late}"),
        "cancelled" => "and was not tested: what waited for it was cancelled".to_owned(),
        "not_tested" => match evidence.resume_at_ms {
            Some(at_ms) if at_ms > now_ms => {
                format!("and is not tested yet: it comes in {}", duration::format(at_ms.saturating_sub(now_ms)))
            }
            _ => "and is not tested: nothing was sent after it".to_owned(),
        },
        other => format!("and its word is `{other}`"),
    };
    format!("{named} {outcome}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Candidate, LimitKind, SourceKind};
    use crate::store::{EvidenceRow, Fence, JobId, LaneKey, ScopeKey, SendKey};

    const NOW_MS: i64 = 1_796_047_385_000;

    fn candidate(name: &str, verdict: Verdict, why: &str) -> Candidate {
        Candidate {
            source: SourceKind::Header,
            name: name.into(),
            raw: Some("52".into()),
            at_ms: Some(NOW_MS - 8_000),
            kind: None,
            remaining: None,
            verdict,
            why: why.into(),
        }
    }

    fn row(word: &str) -> ResetRow {
        let key = SendKey { job_id: JobId(uuid::Uuid::nil()), fence: Fence(3), n: 1 };
        ResetRow {
            key,
            lane: LaneKey {
                queue: "default".into(),
                tenant: String::new(),
                scope: ScopeKey { provider: "api.example.com".into(), account: "main".into(), model: "m".into() },
            },
            evidence: EvidenceRow {
                n: 1,
                received_ms: NOW_MS - 60_000,
                reset_at_ms: Some(NOW_MS - 8_000),
                resume_at_ms: Some(NOW_MS - 8_000),
                skew_ms: 0,
                source_kind: Some("header".into()),
                source_name: Some("retry-after".into()),
                raw: Some("52".into()),
                limit_kind: Some(LimitKind::Tokens),
                cause: "rate_limit".into(),
                rule: None,
                rules_version: 1,
                candidates: vec![
                    candidate("x-ratelimit-reset-requests", Verdict::Earlier, "stands, but ends 12 s before"),
                    candidate("retry-after", Verdict::Selected, "the latest that stands"),
                ],
            },
            tested_ms: Some(NOW_MS - 7_982),
            lateness_ms: Some(18),
            word: word.into(),
            again_by_ms: None,
            hold: None,
            decision: Some("defer".into()),
            test: Some(key),
        }
    }

    #[test]
    fn every_word_has_its_sentence() {
        let mut early = row("not_tested");
        early.evidence.resume_at_ms = Some(NOW_MS + 4_000);
        early.evidence.skew_ms = 1_200;
        let mut unnamed = row("not_tested");
        (unnamed.evidence.reset_at_ms, unnamed.evidence.resume_at_ms) = (None, None);
        let rows = [
            row("kept"),
            ResetRow { again_by_ms: Some(9_000), ..row("refused_again") },
            ResetRow { lateness_ms: Some(-4_000), ..row("released") },
            ResetRow { tested_ms: None, ..row("cancelled") },
            ResetRow { tested_ms: None, ..row("not_tested") },
            ResetRow { tested_ms: None, ..early },
            ResetRow { tested_ms: None, ..unnamed },
            row("a word of later"),
        ];
        let told: Vec<String> = rows
            .into_iter()
            .map(|row| refusal(row, None, &[], NOW_MS))
            .map(|told| format!("{}\n  {}", told.text, told.arithmetic))
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn the_selected_candidate_stands_first_with_its_distance() {
        let told = refusal(row("kept"), None, &[], NOW_MS);
        let names: Vec<&str> = told.candidates.iter().map(|heard| heard.candidate.name.as_str()).collect();
        assert_eq!(names, ["retry-after", "x-ratelimit-reset-requests"]);
        assert_eq!(told.candidates[0].delta_ms, Some(52_000));
        assert_eq!(told.tested.unwrap().outcome, None);
    }
}
