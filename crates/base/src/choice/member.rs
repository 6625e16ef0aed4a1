//! Where a dispatcher puts a request.

/// How many requests a member of a central queue may hold at most, the one that it works on included: 1 or 2.
///
/// 1 gives to idle members only. 2 hides the time of the hand-off behind the work on the request before, at the price that a
/// request may wait behind a long one while another member becomes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding(u32);

impl Outstanding {
    /// Requests go to idle members only.
    pub const ONE: Outstanding = Outstanding(1);
    /// One request waits at each member that works.
    pub const TWO: Outstanding = Outstanding(2);

    /// A limit; `None` if it is neither 1 nor 2.
    pub fn new(limit: u32) -> Option<Outstanding> {
        (1..=2).contains(&limit).then_some(Outstanding(limit))
    }

    /// The limit.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// The member that gets the next request of a central queue: the one that holds the fewest requests, if these are fewer than
/// `limit`. `held` has what each holds, the request in work included. `None`: the request waits in the central queue.
///
/// Of equals it is the first, so that under a low load few members work and the others may sleep. Takes time in proportion to the
/// number of members.
pub fn least_loaded_member(
    held: impl IntoIterator<Item = u32>,
    limit: Outstanding,
) -> Option<usize> {
    let mut best: Option<(usize, u32)> = None;
    for (member, held) in held.into_iter().enumerate() {
        if held == 0 {
            return Some(member);
        }
        if held < limit.0 && best.is_none_or(|(_, least)| held < least) {
            best = Some((member, held));
        }
    }
    best.map(|(member, _)| member)
}

/// The member that all requests of a connection go to, under `-dfcfs` and, unless they are stolen, `-ws`. `hash` is that of the
/// connection, all of whose bits count alike; members get equal parts of all hashes. 0 if there are no members.
pub fn member_of_connection(hash: u32, members: u16) -> u16 {
    // Below `members`, so it fits.
    ((u64::from(hash) * u64::from(members)) >> u32::BITS) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_or_two_requests_may_be_outstanding() {
        assert_eq!(
            [0, 1, 2, 3].map(Outstanding::new),
            [None, Some(Outstanding::ONE), Some(Outstanding::TWO), None]
        );
        assert_eq!(Outstanding::TWO.get(), 2);
    }

    #[test]
    fn idle_members_come_before_those_that_work() {
        assert_eq!(least_loaded_member([1, 1, 0, 0], Outstanding::TWO), Some(2));
        assert_eq!(least_loaded_member([2, 1, 1], Outstanding::TWO), Some(1));
        assert_eq!(least_loaded_member([1, 1], Outstanding::ONE), None);
        assert_eq!(least_loaded_member([], Outstanding::TWO), None);
    }

    #[test]
    fn members_get_equal_parts_of_the_hashes() {
        assert_eq!(member_of_connection(u32::MAX, 0), 0);
        for members in [1, 2, 3, 7, 64] {
            let mut parts = vec![0_u32; usize::from(members)];
            for step in 0..1_u32 << 16 {
                parts[usize::from(member_of_connection(step << 16, members))] += 1;
            }
            let (least, most) = (parts.iter().min(), parts.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{parts:?}");
        }
    }

    proptest! {
        #[test]
        fn the_choice_is_that_of_a_sorted_list(
            held in prop::collection::vec(0_u32..4, 0..70),
            limit in 1_u32..=2,
        ) {
            let mut sorted: Vec<(u32, usize)> = held.iter().copied().zip(0..).collect();
            sorted.sort_unstable();
            let oracle = sorted.first().filter(|(held, _)| *held < limit).map(|(_, member)| *member);
            let limit = Outstanding::new(limit).unwrap();
            prop_assert_eq!(least_loaded_member(held.iter().copied(), limit), oracle);
        }

        #[test]
        fn no_member_ever_holds_more_than_the_limit_and_none_idles_beside_a_queue(
            steps in prop::collection::vec((any::<bool>(), 0_usize..5), 0..200),
            limit in 1_u32..=2,
        ) {
            // A queue and five members: requests arrive (true), or a member completes one.
            let limit = Outstanding::new(limit).unwrap();
            let (mut waiting, mut held) = (0_u32, [0_u32; 5]);
            for (arrives, member) in steps {
                if arrives {
                    waiting += 1;
                } else {
                    held[member] = held[member].saturating_sub(1);
                }
                while waiting > 0 && let Some(member) = least_loaded_member(held, limit) {
                    waiting -= 1;
                    held[member] += 1;
                }
                prop_assert!(held.iter().all(|held| *held <= limit.get()));
                prop_assert!(waiting == 0 || held.iter().all(|held| *held == limit.get()));
            }
        }
    }
}
