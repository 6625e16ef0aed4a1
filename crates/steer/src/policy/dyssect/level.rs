//! How much should leave each lane of a group so that loads are as even as can be.

/// A working lane of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) load: u64,
    pub(super) may_leave: u64,
}

/// What leaves the members for their offloading lane, and so its load: the least sum of squares is
/// where that load is Z and every member sends what it has above Z, as far as that may leave. What
/// members send falls with Z, so there is one such Z; it is found by halving, in at most 64 rounds.
pub(super) fn level(members: &[Member]) -> u64 {
    let sends = |level: u64| members.iter().map(|member| member.sends(level)).sum::<u64>();
    let (mut low, mut high) = (0, sends(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if sends(middle) >= middle {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

impl Member {
    /// What it sends when the offloading lane has so much.
    pub(super) fn sends(&self, level: u64) -> u64 {
        self.load.saturating_sub(level).min(self.may_leave)
    }

    /// Whether it could send more or less.
    pub(super) fn is_level(&self, level: u64) -> bool {
        (1..self.may_leave).contains(&self.sends(level))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn squares(members: &[Member], sends: &[u64]) -> u64 {
        let at_home: u64 = members.iter().zip(sends).map(|(m, s)| (m.load - s).pow(2)).sum();
        at_home + sends.iter().sum::<u64>().pow(2)
    }

    proptest! {
        /// Against all ways to send whole units.
        #[test]
        fn no_other_way_to_send_is_more_even(
            figures in prop::collection::vec((0..12_u64, 0..12_u64), 1..4),
        ) {
            let members: Vec<Member> = figures
                .iter()
                .map(|&(load, may)| Member { load, may_leave: may.min(load) })
                .collect();
            let level = level(&members);
            let sends: Vec<u64> = members.iter().map(|member| member.sends(level)).collect();
            let found = squares(&members, &sends);
            let mut other = vec![0; members.len()];
            loop {
                // A unit is the grain of the level: each lane is off by less than one.
                let slack = 2 * (members.len() as u64 + 1) * (members.len() as u64 + 1);
                prop_assert!(found <= squares(&members, &other) + slack);
                let Some(next) = (0..other.len()).find(|at| other[*at] < members[*at].may_leave)
                else {
                    break;
                };
                other[next] += 1;
                other[..next].fill(0);
            }
        }
    }
}
