//! Which ports of a class suit a flow.

use std::ops::{Range, RangeInclusive};

use rand::Rng;

use super::rank_set::RankSet;

/// The first ports that need no privilege (RFC 4787, REQ-3).
pub(super) const UNPRIVILEGED: u16 = 1_024;

/// The ranks of those ports of a class that may be given out: the even ones, and the odd ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The privileged ports.
    low: [Range<u32>; 2],
    /// The configured ports.
    high: [Range<u32>; 2],
}

impl Bounds {
    /// Those of `class`, even ports, ascending, and then odd ones, ascending; the configuration gives out `ports`.
    pub(super) fn of(class: &[u16], ports: &RangeInclusive<u16>) -> Bounds {
        let odd = class.partition_point(|port| port % 2 == 0);
        let halves = [0..odd, odd..class.len()];
        let low = halves.clone().map(|half| within(class, half, &(1..=UNPRIVILEGED - 1)));
        Bounds { low, high: halves.map(|half| within(class, half, ports)) }
    }
}

/// The ports of one class that suit a flow, by their ranks.
#[derive(Clone, Debug)]
pub(super) struct Suitable {
    /// The rank of the inner port itself, if the class has it and it may be given out.
    pub(super) preserved: Option<usize>,
    /// The ranks of all ports that suit, best first: privileged ones for a privileged port, and then the
    /// configured ones, both of the inner port's parity; then the same of the other parity.
    pub(super) ranges: [Range<usize>; 4],
}

impl Suitable {
    /// What suits of a class with these bounds. `rank` is the inner port's if the class has it.
    ///
    /// Privileged ports stay privileged if possible, others never become so (RFC 4787, REQ-3). Even ports
    /// stay even while there are such ports (REQ-4); no flow is refused for its parity.
    #[inline]
    pub(super) fn of(
        bounds: &Bounds,
        rank: Option<usize>,
        (inner, privileged): (u16, bool),
    ) -> Suitable {
        let keeps_privilege = privileged && inner < UNPRIVILEGED;
        let range = |ranks: &Range<u32>| ranks.start as usize..ranks.end as usize;
        let half = |parity: u16| {
            let parity = usize::from(parity);
            let low = if keeps_privilege { range(&bounds.low[parity]) } else { 0..0 };
            [low, range(&bounds.high[parity])]
        };
        let [[same_low, same_high], [other_low, other_high]] =
            [half(inner % 2), half(1 - inner % 2)];
        let may_be = |rank: &usize| same_low.contains(rank) || same_high.contains(rank);
        let preserved = rank.filter(|rank| inner != 0 && may_be(rank));
        Suitable { preserved, ranges: [same_low, same_high, other_low, other_high] }
    }

    /// One of `free` that suits: the inner port itself, else an unpredictable one (RFC 6056), the
    /// first from a random rank on. It finds one if there is one, and the time does not depend on how many
    /// there are.
    pub(super) fn choose(&self, free: &RankSet, rng: &mut impl Rng) -> Option<usize> {
        if let Some(rank) = self.preserved.filter(|rank| free.contains(*rank)) {
            return Some(rank);
        }
        self.ranges
            .iter()
            .filter(|range| !range.is_empty())
            .find_map(|range| free.first_from(rng.random_range(range.clone()), range.clone()))
    }

    /// At most `most` members of `set` that suit, best ranges first, from a random rank in each on.
    pub(super) fn some_of(
        &self,
        set: &RankSet,
        rng: &mut impl Rng,
        most: usize,
        mut look: impl FnMut(usize) -> Look,
    ) -> Option<usize> {
        let mut left = most;
        for range in self.ranges.iter().filter(|range| !range.is_empty()) {
            let start = rng.random_range(range.clone());
            for part in [start..range.end, range.start..start] {
                let mut at = part.start;
                while let Some(rank) = set.first_in(at..part.end) {
                    if left == 0 {
                        return None;
                    }
                    left -= 1;
                    if look(rank) == Look::Taken {
                        return Some(rank);
                    }
                    at = rank + 1;
                }
            }
        }
        None
    }

    /// As [`Suitable::choose`], of those that `usable` says can be had, which at most `most` are asked for: a
    /// port of the other parity only if none of the right one is left.
    pub(super) fn try_some(
        &self,
        rng: &mut impl Rng,
        mut most: usize,
        usable: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if let Some(rank) = self.preserved.filter(|rank| usable(*rank)) {
            return Some(rank);
        }
        for range in self.ranges.iter().filter(|range| !range.is_empty()) {
            let start = rng.random_range(range.clone());
            for rank in (start..range.end).chain(range.start..start) {
                if most == 0 {
                    return None;
                }
                most -= 1;
                if usable(rank) {
                    return Some(rank);
                }
            }
        }
        None
    }

    /// How many ports suit.
    pub(super) fn len(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    /// Whether a rank suits.
    pub(super) fn contains(&self, rank: usize) -> bool {
        self.ranges.iter().any(|range| range.contains(&rank))
    }
}

/// What becomes of a port that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is the one.
    Taken,
    /// The next, please.
    Next,
}

/// The ranks of those ports of `half` of a class, which are ascending, that lie in a range.
fn within(class: &[u16], half: Range<usize>, ports: &RangeInclusive<u16>) -> Range<u32> {
    let members = &class[half.clone()];
    let start = members.partition_point(|port| port < ports.start());
    let end = members.partition_point(|port| port <= ports.end());
    let rank = |at: usize| (half.start + at) as u32;
    rank(start)..rank(end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashSet;

    fn suitable(class: &[u16], ports: RangeInclusive<u16>, wanted: (u16, bool)) -> Suitable {
        let rank = class.iter().position(|port| *port == wanted.0);
        Suitable::of(&Bounds::of(class, &ports), rank, wanted)
    }

    /// Even ports, ascending, and then odd ones, as classes are.
    fn class() -> Vec<u16> {
        let mut class: Vec<u16> = (0..512).map(|rank| rank * 128 + rank % 5).collect();
        class.sort_by_key(|port| (port % 2, *port));
        class
    }

    fn set(class: &[u16], usable: impl Fn(u16) -> bool) -> RankSet {
        let mut free = RankSet::new(class.len());
        let ranks = class.iter().enumerate().filter(|(_, port)| usable(**port));
        ranks.for_each(|(rank, _)| free.insert(rank));
        free
    }

    fn choose(inner: u16, rng: &mut StdRng, usable: impl Fn(u16) -> bool) -> Option<u16> {
        let class = class();
        let suitable = suitable(&class, 1_024..=65_535, (inner, true));
        suitable.choose(&set(&class, usable), rng).map(|rank| class[rank])
    }

    #[test]
    fn the_port_itself_comes_first_then_range_and_parity_hold() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut choose = |inner, usable: &dyn Fn(u16) -> bool| choose(inner, &mut rng, usable);
        let member = class()[100];
        assert_eq!(choose(member, &|_| true), Some(member));
        for inner in [2_000_u16, 2_001, 40_000, 65_535] {
            let port = choose(inner, &|port| port != inner).unwrap();
            assert_eq!((port % 2, port >= 1_024), (inner % 2, true));
            let other = choose(inner, &|port| port % 2 != inner % 2).unwrap();
            assert_eq!((other % 2, other >= 1_024), (1 - inner % 2, true), "the other parity");
        }
        let low = choose(22, &|_| true).unwrap();
        assert_eq!((low % 2, (1..1_024).contains(&low)), (0, true));
        let high = choose(22, &|port| port >= 1_024).unwrap();
        assert_eq!((high % 2, high >= 1_024), (0, true));
        assert_eq!(choose(2_000, &|port| port < 1_024), None, "privileged");
    }

    proptest! {
        /// Held against a plain search through all ports.
        #[test]
        fn a_port_is_found_if_there_is_one(
            taken in prop::collection::vec(0_usize..512, 0..2_000),
            inner: u16,
            (first, last) in (1_u16..=u16::MAX, 1_u16..=u16::MAX),
            privileged: bool,
            seed: u64,
        ) {
            let (class, ports) = (class(), first.min(last)..=first.max(last));
            let taken: HashSet<u16> = taken.into_iter().map(|rank| class[rank]).collect();
            let suitable = suitable(&class, ports.clone(), (inner, privileged));
            let mut rng = StdRng::seed_from_u64(seed);
            let found = suitable.choose(&set(&class, |port| !taken.contains(&port)), &mut rng);
            let found = found.map(|rank| class[rank]);
            let keeps = privileged && inner < 1_024;
            let suits = |port: &u16| {
                ports.contains(port) || keeps && (1..1_024).contains(port)
            };
            let free = class.iter().copied().filter(|port| suits(port) && !taken.contains(port));
            // The worth of a port: itself, then parity, then privilege.
            let worth = |port: u16| {
                let low = keeps && port < 1_024;
                (port == inner && inner != 0, port % 2 == inner % 2, low)
            };
            let best = free.clone().map(worth).max();
            prop_assert_eq!(found.map(worth), best);
            prop_assert!(found.is_none_or(|port| free.clone().any(|other| other == port)));
        }
    }

    #[test]
    fn ports_cannot_be_foreseen() {
        let mut rng = StdRng::seed_from_u64(3);
        let ports: Vec<_> =
            (0..2_000).map(|_| choose(1_025, &mut rng, |_| true).unwrap()).collect();
        let distinct: HashSet<_> = ports.iter().collect();
        assert!(distinct.len() > 190, "{} of about 202 odd ones", distinct.len());
        // Knowing the last one tells little about the next.
        let near = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 600).count();
        assert!(near < 120, "{near} of 2,000 follow closely on another");
    }
}
