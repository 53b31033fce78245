//! Which lane may claim how many turns: equal shares within what scopes and accounts have room for.

use std::collections::BTreeMap;

/// A lane with claimable turns, of a queue that is not paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    pub lane_id: i64,
    pub scope_id: i64,
    /// The whole account's scope.
    pub account_id: Option<i64>,
    pub ready: i64,
    /// The draw of its latest claim: of two lanes, the one with the lower draw has waited longer.
    pub served: i64,
}

/// How many turns each lane may claim, out of `slots` in all; lanes that get none are left out.
///
/// One each in turn, the lane that was served longest ago first, until slots, lanes or scopes have no room left. `rooms`
/// says for each scope, accounts included, how many sends may start ([`super::Hold::room`], [`super::Flow::room`]);
/// a scope that is not in it has none.
///
/// Time is linear in lanes and slots where the lanes come sorted by `served`.
#[must_use]
pub fn grants(mut lanes: Vec<Lane>, rooms: &BTreeMap<i64, i64>, slots: u32) -> Vec<(i64, u32)> {
    let longest_waiting = |lane: &Lane| (lane.served, lane.lane_id);
    if !lanes.is_sorted_by_key(longest_waiting) {
        lanes.sort_unstable_by_key(longest_waiting);
    }
    let mut rooms = rooms.clone();
    let mut slots = slots;
    let mut shares = lanes.iter().map(|lane| (lane.lane_id, 0_u32)).collect::<Vec<_>>();
    // Places of `lanes` and `shares` that are still in the round.
    let mut round = (0..lanes.len()).collect::<Vec<_>>();
    while slots > 0 && !round.is_empty() {
        round.retain(|place| {
            let lane = &lanes[*place];
            let taken = i64::from(shares[*place].1);
            let room = |id: i64| rooms.get(&id).copied().unwrap_or(0);
            if slots == 0
                || taken >= lane.ready
                || room(lane.scope_id) < 1
                || lane.account_id.is_some_and(|id| room(id) < 1)
            {
                return false;
            }
            for id in std::iter::once(lane.scope_id).chain(lane.account_id) {
                rooms.entry(id).and_modify(|room| *room -= 1);
            }
            slots -= 1;
            shares[*place].1 += 1;
            true
        });
    }
    shares.retain(|(_, share)| *share > 0);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lane(lane_id: i64, scope_id: i64, ready: i64, served: i64) -> Lane {
        Lane { lane_id, scope_id, account_id: Some(100), ready, served }
    }

    #[test]
    fn lanes_share_equally_and_what_one_does_not_need_goes_to_the_others() {
        let rooms = [(1, i64::MAX), (100, i64::MAX)].into();
        let lanes = vec![lane(1, 1, 50, 7), lane(2, 1, 1, 3), lane(3, 1, 50, 9)];
        assert_eq!(grants(lanes.clone(), &rooms, 9), [(2, 1), (1, 4), (3, 4)]);
        assert_eq!(grants(lanes, &rooms, 1), [(2, 1)]);
    }

    #[test]
    fn no_scope_and_no_account_gives_more_than_it_has_room_for() {
        let rooms = [(1, 2), (2, 9), (100, 3)].into();
        assert_eq!(grants(vec![lane(1, 1, 50, 0), lane(2, 2, 50, 0)], &rooms, 64), [(1, 2), (2, 1)]);
        assert_eq!(grants(vec![lane(1, 1, 50, 0)], &[(1, 0), (100, 3)].into(), 64), []);
        assert_eq!(grants(vec![lane(1, 1, 50, 0)], &[(1, 5)].into(), 64), []);
    }

    /// Lanes 0.. over scopes 0..5 of accounts 100 and 101.
    fn any_lanes() -> impl Strategy<Value = Vec<Lane>> {
        prop::collection::vec((0..5_i64, 1..40_i64, 0..9_i64), 1..30).prop_map(|lanes| {
            let lane = |(lane_id, (scope_id, ready, served))| Lane {
                lane_id,
                scope_id,
                account_id: [None, Some(100), Some(101)]
                    .into_iter()
                    .cycle()
                    .nth(usize::try_from(scope_id).unwrap())
                    .unwrap(),
                ready,
                served,
            };
            (0_i64..).zip(lanes).map(lane).collect()
        })
    }

    fn any_rooms() -> impl Strategy<Value = BTreeMap<i64, i64>> {
        let room = || prop_oneof![0..12_i64, Just(i64::MAX)];
        (prop::array::uniform5(room()), prop::array::uniform2(room()))
            .prop_map(|(scopes, accounts)| (0..5).zip(scopes).chain((100..102).zip(accounts)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bound_is_exceeded_and_no_room_is_wasted(lanes in any_lanes(), rooms in any_rooms(), slots in 0..80_u32) {
            let shares: BTreeMap<i64, u32> = grants(lanes.clone(), &rooms, slots).into_iter().collect();
            let share = |lane: &Lane| i64::from(shares.get(&lane.lane_id).copied().unwrap_or(0));
            let given: i64 = lanes.iter().map(share).sum();
            prop_assert!(given <= i64::from(slots));
            let used = |id: i64| -> i64 {
                lanes.iter().filter(|lane| lane.scope_id == id || lane.account_id == Some(id)).map(share).sum()
            };
            for (id, room) in &rooms {
                prop_assert!(used(*id) <= *room, "scope {} gave {} of {}", id, used(*id), room);
            }
            for lane in &lanes {
                prop_assert!(share(lane) <= lane.ready);
                let left = |id: i64| rooms[&id] - used(id);
                let could = share(lane) < lane.ready && left(lane.scope_id) > 0 && lane.account_id.is_none_or(|id| left(id) > 0);
                prop_assert!(!could || given == i64::from(slots), "lane {} could have had more", lane.lane_id);
            }
        }

        #[test]
        fn lanes_of_one_fate_differ_by_one_at_most(lanes in any_lanes(), rooms in any_rooms(), slots in 0..80_u32) {
            let shares: BTreeMap<i64, u32> = grants(lanes.clone(), &rooms, slots).into_iter().collect();
            let share = |lane: &Lane| i64::from(shares.get(&lane.lane_id).copied().unwrap_or(0));
            for one in &lanes {
                for other in lanes.iter().filter(|other| other.scope_id == one.scope_id) {
                    let wanted_more = share(other) < other.ready;
                    prop_assert!(!wanted_more || share(one) - share(other) <= 1);
                }
            }
        }

        #[test]
        fn no_lane_starves(count in 1..40_i64, slots in 1..8_u32) {
            let rooms = [(1, i64::MAX), (100, i64::MAX)].into();
            let mut lanes = (0..count).map(|id| lane(id, 1, i64::MAX, 0)).collect::<Vec<_>>();
            let rounds = u64::try_from(count).unwrap().div_ceil(u64::from(slots));
            for draw in 1..=i64::try_from(rounds).unwrap() {
                for (lane_id, _) in grants(lanes.clone(), &rooms, slots) {
                    lanes.iter_mut().filter(|lane| lane.lane_id == lane_id).for_each(|lane| lane.served = draw);
                }
            }
            prop_assert!(lanes.iter().all(|lane| lane.served > 0));
        }
    }
}
