//! What becomes of each request: refusals that stand, limits, rules, in this order; and the counting of it.
//!
//! One value behind one lock, so that the same arrival order gives the same run. Nothing here waits or touches sockets.

mod refusing;
mod report;

pub(super) use refusing::Refusing;

use super::ask::Ask;
use super::ledger::{Arrival, Counts, Judged, Outcome, Refusals, Ring, Shut};
use super::meter::{Meter, Refused};
use super::scenario::{Count, Deed, Limit, Manner, Reach, Rule, Scenario, Since};
use super::text;
use refusing::{metered, scripted};
use std::collections::HashMap;
use std::sync::Arc;

/// Scopes told apart; what comes beyond them is counted together.
const MAX_SCOPES: usize = 10_000;
const OTHERS: &str = "(others)";

/// What to do with a request.
#[derive(Debug)]
pub(super) enum Verdict {
    Refuse(Refusing),
    /// A rule's deed other than a refusal, with the rule's ordinal in the scenario.
    Play(usize),
    Answer,
}

/// What a request holds until it ends.
#[derive(Debug)]
pub(super) struct Admitted {
    pub n: u64,
    epoch: u64,
    scope: usize,
    key: usize,
    reach: Reach,
    /// Limits on what is in flight that count this request, with their slots.
    held: Vec<(usize, usize)>,
}

#[derive(Debug)]
pub(super) struct Core {
    scenario: Arc<Scenario>,
    epoch: u64,
    started_ms: i64,
    keys: Vec<KeyState>,
    key_index: HashMap<String, usize>,
    scopes: Vec<ScopeState>,
    limits: Vec<LimitState>,
    rules: Vec<RuleState>,
    log: Ring<Entry>,
}

#[derive(Debug)]
struct KeyState {
    label: Arc<str>,
    scopes: HashMap<String, usize>,
    refusals: Refusals,
    shut: Option<Standing>,
}

#[derive(Debug)]
struct ScopeState {
    key: usize,
    model: Arc<str>,
    counts: Counts,
    refusals: Refusals,
    shut: Option<Standing>,
}

/// A scripted refusal that stands until its reset.
#[derive(Clone, Copy, Debug)]
struct Standing {
    rule: usize,
    until_ms: i64,
}

#[derive(Debug, Default)]
struct LimitState {
    /// By key or scope, as the limit reaches.
    meters: HashMap<usize, Meter>,
    refused: u64,
}

#[derive(Debug, Default)]
struct RuleState {
    /// When the first request came that it concerns at any time.
    first_ms: Option<i64>,
    seen: u64,
    taken: u64,
}

#[derive(Debug)]
struct Entry {
    at_ms: i64,
    scope: usize,
    /// A digest of what was asked.
    question: u64,
    outcome: Outcome,
    status: Option<u16>,
    judged: Judged,
    concurrent: bool,
    by: Option<By>,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Rule(usize),
    Limit(usize),
}

impl Core {
    pub(super) fn new(scenario: Arc<Scenario>, now_ms: i64) -> Self {
        Self {
            epoch: 0,
            started_ms: now_ms,
            keys: Vec::new(),
            key_index: HashMap::new(),
            scopes: Vec::new(),
            limits: scenario.limits.iter().map(|_| LimitState::default()).collect(),
            rules: scenario.rules.iter().map(|_| RuleState::default()).collect(),
            log: Ring::new(),
            scenario,
        }
    }

    /// Forgets everything; requests still in flight are counted nowhere any more.
    pub(super) fn reset(&mut self, now_ms: i64) {
        *self = Self { epoch: self.epoch + 1, ..Self::new(Arc::clone(&self.scenario), now_ms) };
    }

    /// Counts a request and decides what becomes of it. `cost_tokens`: of the prompt and of the answer it would get.
    pub(super) fn admit(&mut self, ask: &Ask, arrival: Arrival, cost_tokens: u64) -> (Admitted, Verdict) {
        let scope = self.scope(&ask.key, &ask.model);
        let key = self.scopes[scope].key;
        let grace_ms = self.scenario.grace_ms;
        let judged =
            self.scopes[scope].refusals.judge(arrival, grace_ms).or(self.keys[key].refusals.judge(arrival, grace_ms));
        let mut admitted = Admitted { n: 0, epoch: self.epoch, scope, key, reach: Reach::KeyModel, held: Vec::new() };
        let (verdict, by) = self.decide(ask, arrival.at_ms, cost_tokens, &mut admitted);
        let mut concurrent = false;
        if let Verdict::Refuse(refusing) = &verdict
            && refusing.kind.refuses()
        {
            concurrent = judged.unknowing;
            self.refusals(&admitted).decided(refusing.shut());
        }
        let counts = &mut self.scopes[scope].counts;
        counts.received += 1;
        counts.in_flight += 1;
        counts.received_tokens += ask.prompt_tokens;
        counts.early += u64::from(judged.early);
        counts.doomed += u64::from(judged.doomed);
        counts.concurrent += u64::from(concurrent);
        let outcome = Outcome::InFlight;
        let at_ms = arrival.at_ms;
        let question = text::digest(&ask.question);
        admitted.n = self.log.push(Entry { at_ms, scope, question, outcome, status: None, judged, concurrent, by });
        (admitted, verdict)
    }

    fn decide(&mut self, ask: &Ask, now_ms: i64, cost_tokens: u64, admitted: &mut Admitted) -> (Verdict, Option<By>) {
        if let Some((refusing, reach)) = self.standing(admitted, now_ms) {
            let by = refusing.rule.map(By::Rule);
            admitted.reach = reach;
            return (Verdict::Refuse(refusing), by);
        }
        if let Some((limit, refusing)) = self.meter(ask, now_ms, cost_tokens, admitted) {
            return (Verdict::Refuse(refusing), Some(By::Limit(limit)));
        }
        let Some(rule) = self.rule(ask, now_ms) else {
            return (Verdict::Answer, None);
        };
        let scenario = Arc::clone(&self.scenario);
        let Deed::Refuse { refuse, reset_in_ms, closes } = &scenario.rules[rule].deed else {
            return (Verdict::Play(rule), Some(By::Rule(rule)));
        };
        let true_ms = reset_in_ms.map(|reset_in_ms| now_ms.saturating_add(reset_in_ms));
        if let (Some(reach), Some(until_ms)) = (closes, true_ms) {
            let standing = Some(Standing { rule, until_ms });
            admitted.reach = *reach;
            match reach {
                Reach::KeyModel => self.scopes[admitted.scope].shut = standing,
                Reach::Key => self.keys[admitted.key].shut = standing,
            }
        }
        (Verdict::Refuse(scripted(refuse, rule, true_ms)), Some(By::Rule(rule)))
    }

    /// A scripted refusal whose reset has not come.
    fn standing(&self, admitted: &Admitted, now_ms: i64) -> Option<(Refusing, Reach)> {
        let of_scope = self.scopes[admitted.scope].shut.map(|standing| (standing, Reach::KeyModel));
        let of_key = self.keys[admitted.key].shut.map(|standing| (standing, Reach::Key));
        let (standing, reach) = [of_scope, of_key].into_iter().flatten().find(|(one, _)| one.until_ms > now_ms)?;
        match &self.scenario.rules[standing.rule].deed {
            Deed::Refuse { refuse, .. } => Some((scripted(refuse, standing.rule, Some(standing.until_ms)), reach)),
            _ => None,
        }
    }

    /// The limit that refuses longest, if one refuses; else all of them are charged.
    fn meter(
        &mut self,
        ask: &Ask,
        now_ms: i64,
        cost_tokens: u64,
        admitted: &mut Admitted,
    ) -> Option<(usize, Refusing)> {
        let scenario = Arc::clone(&self.scenario);
        let started_ms = self.started_ms;
        let concerned = || {
            let all = scenario.limits.iter().enumerate();
            all.filter(|(_, limit)| limit.who.concerns(&ask.key, &ask.model))
        };
        let slot = |limit: &Limit| match limit.reach {
            Reach::KeyModel => admitted.scope,
            Reach::Key => admitted.key,
        };
        let mut worst: Option<(usize, Refused, Reach)> = None;
        for (nth, limit) in concerned() {
            let meters = &mut self.limits[nth].meters;
            let meter = meters.entry(slot(limit)).or_insert_with(|| Meter::new(limit, started_ms, now_ms));
            if let Err(refused) = meter.check(limit, cost(limit, cost_tokens), started_ms, now_ms)
                && worst.is_none_or(|(_, other, _)| rank(refused) > rank(other))
            {
                worst = Some((nth, refused, limit.reach));
            }
        }
        if let Some((nth, refused, reach)) = worst {
            self.limits[nth].refused += 1;
            admitted.reach = reach;
            return Some((nth, metered(&scenario.limits[nth], refused, cost_tokens)));
        }
        let mut held = Vec::new();
        for (nth, limit) in concerned() {
            if let Some(meter) = self.limits[nth].meters.get_mut(&slot(limit)) {
                meter.take(limit, cost(limit, cost_tokens));
            }
            if limit.count == Count::InFlight {
                held.push((nth, slot(limit)));
            }
        }
        admitted.held = held;
        None
    }

    /// The first rule that takes the request. Each rule counts the requests that concern it and that no rule before it took.
    fn rule(&mut self, ask: &Ask, now_ms: i64) -> Option<usize> {
        let scenario = Arc::clone(&self.scenario);
        for (nth, rule) in scenario.rules.iter().enumerate() {
            if !concerns(rule, ask) {
                continue;
            }
            let state = &mut self.rules[nth];
            let origin_ms = match rule.since {
                Since::Start => self.started_ms,
                Since::First => *state.first_ms.get_or_insert(now_ms),
            };
            let since_ms = now_ms - origin_ms;
            if since_ms < rule.from_ms || rule.until_ms.is_some_and(|until_ms| since_ms >= until_ms) {
                continue;
            }
            state.seen += 1;
            let drawn = rule.probability.is_none_or(|share| draw(scenario.seed, nth, state.seen) < share);
            if drawn && rule.pick.takes(state.seen) {
                state.taken += 1;
                return Some(nth);
            }
        }
        None
    }

    /// A request's response head is known.
    pub(super) fn head(&mut self, admitted: &Admitted, status: u16) {
        if admitted.epoch == self.epoch
            && let Some(entry) = self.log.get_mut(admitted.n)
        {
            entry.status = Some(status);
        }
    }

    /// A request has ended. `shut`: what its refusal named, if its response left whole.
    pub(super) fn end(
        &mut self,
        admitted: &Admitted,
        outcome: Outcome,
        sent_tokens: u64,
        shut: Option<Shut>,
        at: Arrival,
    ) {
        if admitted.epoch != self.epoch {
            return;
        }
        for (limit, slot) in &admitted.held {
            if let Some(meter) = self.limits[*limit].meters.get_mut(slot) {
                meter.leave();
            }
        }
        if let Some(shut) = shut {
            self.refusals(admitted).answered(at, shut);
        }
        let counts = &mut self.scopes[admitted.scope].counts;
        counts.end(outcome);
        counts.sent_tokens += sent_tokens;
        if let Some(entry) = self.log.get_mut(admitted.n) {
            entry.outcome = outcome;
        }
    }

    fn refusals(&mut self, admitted: &Admitted) -> &mut Refusals {
        match admitted.reach {
            Reach::KeyModel => &mut self.scopes[admitted.scope].refusals,
            Reach::Key => &mut self.keys[admitted.key].refusals,
        }
    }

    fn scope(&mut self, key: &str, model: &str) -> usize {
        if let Some(known) = self.known(key, model) {
            return known;
        }
        if self.scopes.len() >= MAX_SCOPES
            && let Some(others) = self.known(OTHERS, OTHERS)
        {
            return others;
        }
        let (key, model) = if self.scopes.len() + 1 >= MAX_SCOPES { (OTHERS, OTHERS) } else { (key, model) };
        let key_state = self.key_index.get(key).copied().unwrap_or_else(|| {
            let state = KeyState {
                label: label(key).into(),
                scopes: HashMap::new(),
                refusals: Refusals::default(),
                shut: None,
            };
            self.keys.push(state);
            self.key_index.insert(key.to_owned(), self.keys.len() - 1);
            self.keys.len() - 1
        });
        let scope = ScopeState {
            key: key_state,
            model: model.into(),
            counts: Counts::default(),
            refusals: Refusals::default(),
            shut: None,
        };
        self.scopes.push(scope);
        self.keys[key_state].scopes.insert(model.to_owned(), self.scopes.len() - 1);
        self.scopes.len() - 1
    }

    fn known(&self, key: &str, model: &str) -> Option<usize> {
        self.keys[*self.key_index.get(key)?].scopes.get(model).copied()
    }

    /// How answers are given to a request that a rule took, or none.
    pub(super) fn manner(scenario: &Scenario, rule: Option<usize>) -> Manner {
        let mut manner = scenario.answer;
        if let Some(rule) = rule.map(|nth| &scenario.rules[nth]) {
            manner.latency_ms = rule.latency_ms.unwrap_or(manner.latency_ms);
            manner.chunk_latency_ms = rule.chunk_latency_ms.unwrap_or(manner.chunk_latency_ms);
            manner.date_skew_ms = rule.date_skew_ms.unwrap_or(manner.date_skew_ms);
        }
        manner
    }
}

/// Which of two refusals keeps the request out longer.
fn rank(refused: Refused) -> (u8, i64) {
    match refused {
        Refused::Crowded => (0, 0),
        Refused::Until(at_ms) => (1, at_ms),
        Refused::Never => (2, 0),
    }
}

fn cost(limit: &Limit, tokens: u64) -> u64 {
    if limit.count == Count::Tokens { tokens } else { 1 }
}

fn concerns(rule: &Rule, ask: &Ask) -> bool {
    rule.who.concerns(&ask.key, &ask.model)
        && rule.dialect.is_none_or(|dialect| dialect == ask.dialect)
        && rule.stream.is_none_or(|stream| stream == ask.stream)
        && rule.contains.as_ref().is_none_or(|words| ask.question.contains(words))
}

/// In 0.0..1.0, from the seed, the rule and the ordinal.
fn draw(seed: u64, rule: usize, ordinal: u64) -> f64 {
    let bits = text::hash(&[&seed.to_le_bytes(), &rule.to_le_bytes(), &ordinal.to_le_bytes()]);
    let upper = u32::try_from(bits >> 32).unwrap_or(u32::MAX);
    f64::from(upper) / (f64::from(u32::MAX) + 1.0)
}

/// A key as it may be shown: only those made for the simulator are.
fn label(key: &str) -> String {
    if key.is_empty() || key == OTHERS || key.starts_with("sim-") {
        return key.to_owned();
    }
    let digest = text::hash(&[key.as_bytes()]);
    format!("#{:08x}", digest >> 32)
}
