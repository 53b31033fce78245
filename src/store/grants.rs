//! Which lane may claim how many turns: fair shares within what scopes and accounts have room for. Pure.

use std::collections::BTreeMap;

/// A lane with claimable turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub lane_id: i64,
    pub scope_id: i64,
    pub account_id: Option<i64>,
    pub ready: i64,
    /// The draw of its latest claim: the lowest has waited longest.
    pub served: i64,
}

/// What a lane may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub turns: u32,
    /// The place of its last turn among all that are granted: whose is last is served last the next time.
    pub last: i64,
}

/// Turns to take, by lane. One each in turn, the lane that was served longest ago first, until slots, lanes or scopes
/// have no room left.
pub(super) fn grants(mut lines: Vec<Line>, rooms: &BTreeMap<i64, i64>, slots: u32) -> BTreeMap<i64, Share> {
    let mut rooms = rooms.clone();
    let mut slots = slots;
    let mut taken: BTreeMap<i64, Share> = BTreeMap::new();
    let mut place = 0;
    lines.sort_by_key(|line| (line.served, line.lane_id));
    while slots > 0 && !lines.is_empty() {
        lines.retain_mut(|line| {
            let open = |id: i64| rooms.get(&id).is_some_and(|room| *room > 0);
            if slots == 0 || line.ready == 0 || !open(line.scope_id) || !line.account_id.is_none_or(open) {
                return false;
            }
            for id in std::iter::once(line.scope_id).chain(line.account_id) {
                rooms.entry(id).and_modify(|room| *room -= 1);
            }
            slots -= 1;
            line.ready -= 1;
            let share = taken.entry(line.lane_id).or_default();
            *share = Share { turns: share.turns + 1, last: place };
            place += 1;
            true
        });
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(lane_id: i64, scope_id: i64, ready: i64, served: i64) -> Line {
        Line { lane_id, scope_id, account_id: Some(100), ready, served }
    }

    #[test]
    fn lanes_take_turns_and_the_longest_waiting_one_is_first() {
        let rooms = [(1, i64::MAX), (100, i64::MAX)].into();
        let lines = vec![line(1, 1, 50, 7), line(2, 1, 1, 3), line(3, 1, 50, 9)];
        let share = |turns, last| Share { turns, last };
        assert_eq!(grants(lines.clone(), &rooms, 5), [(1, share(2, 3)), (2, share(1, 0)), (3, share(2, 4))].into());
        assert_eq!(grants(lines, &rooms, 1), [(2, share(1, 0))].into());
    }

    #[test]
    fn no_scope_and_no_account_gives_more_than_it_has_room_for() {
        let rooms = [(1, 2), (2, 9), (100, 3)].into();
        let lines = vec![line(1, 1, 50, 0), line(2, 2, 50, 0)];
        let share = |turns, last| Share { turns, last };
        assert_eq!(grants(lines, &rooms, 64), [(1, share(2, 2)), (2, share(1, 1))].into());
        let held = [(1, 0), (100, 3)].into();
        assert_eq!(grants(vec![line(1, 1, 50, 0)], &held, 64), BTreeMap::new());
    }
}
