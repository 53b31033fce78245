//! The controlled number of a scope: how many sends may be in flight (contract §8). Pure.

/// Where the number stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowState {
    /// The operator's limit.
    pub max: Option<i64>,
    /// The number; `None`: not limited (an account without a limit that has not been refused).
    pub limit: Option<i64>,
    /// Up to here it doubles, beyond it grows by one.
    pub threshold: Option<i64>,
    /// Answers of this round.
    pub answered: i64,
}

/// Where nothing is configured, the number starts here (contract §8).
pub(super) const START: i64 = 4;

/// Whether answers make it grow.
pub(super) fn may_grow(flow: &FlowState) -> bool {
    flow.limit.is_some_and(|limit| flow.max.is_none_or(|max| limit < max))
}

/// One more answer; whether anything changed. A round is as many answers as the number allows in flight.
pub(super) fn answered(flow: &mut FlowState) -> bool {
    let Some(limit) = flow.limit else { return false };
    if !may_grow(flow) {
        return false;
    }
    flow.answered += 1;
    if flow.answered >= limit {
        flow.answered = 0;
        let grown = match flow.threshold {
            Some(threshold) if limit < threshold => limit.saturating_mul(2).min(threshold),
            _ => limit.saturating_add(1),
        };
        flow.limit = Some(flow.max.map_or(grown, |max| grown.min(max)));
    }
    true
}

/// A refusal opened a hold: one at a time again, doubling up to half of what it was.
pub(super) fn cut(flow: &mut FlowState, in_flight: i64) {
    let was = flow.limit.unwrap_or_else(|| in_flight.max(START));
    flow.threshold = Some((was / 2).max(1));
    flow.limit = Some(1);
    flow.answered = 0;
}
