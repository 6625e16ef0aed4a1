//! How much should leave each lane of a group so that loads are as even as can be.

use super::placement::DyssectPlacement;

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

/// The loads of offloading lanes, by number.
pub(super) struct Levels(pub(super) Vec<u64>);

impl Levels {
    pub(super) fn of(placement: &DyssectPlacement<'_>) -> Levels {
        Levels((0..placement.offloaders.len()).map(|group| level_of(placement, group)).collect())
    }

    /// The loads of all lanes.
    pub(super) fn loads<'a>(
        &'a self,
        placement: &'a DyssectPlacement<'_>,
    ) -> impl Iterator<Item = u64> + 'a {
        let away = self.away(placement);
        let working = placement.lanes.iter().enumerate().map(move |(n, lane)| lane.load - away[n]);
        working.chain((0..self.0.len()).map(|group| self.received(placement, group)))
    }

    /// What an offloading lane gets; its level but for what rounding leaves.
    fn received(&self, placement: &DyssectPlacement<'_>, group: usize) -> u64 {
        members(placement, group).map(|(_, member)| member.sends(self.0[group])).sum()
    }

    /// What leaves each working lane.
    pub(super) fn away(&self, placement: &DyssectPlacement<'_>) -> Vec<u64> {
        let lanes = placement.lanes.iter();
        lanes
            .map(|lane| {
                let member = Member { load: lane.load, may_leave: lane.may_leave };
                lane.link.map_or(0, |link| member.sends(self.0[usize::from(link)]))
            })
            .collect()
    }

    pub(super) fn squares(&self, placement: &DyssectPlacement<'_>, groups: &[Option<u16>]) -> u128 {
        let square = |load: u64| u128::from(load) * u128::from(load);
        let groups = groups.iter().flatten().map(|link| usize::from(*link));
        groups
            .map(|group| {
                let level = self.0[group];
                let at_home =
                    members(placement, group).map(|(_, m)| square(m.load - m.sends(level)));
                at_home.sum::<u128>() + square(self.received(placement, group))
            })
            .sum()
    }
}

pub(super) fn members<'a>(
    placement: &'a DyssectPlacement<'_>,
    group: usize,
) -> impl Iterator<Item = (usize, Member)> + 'a {
    let lanes = placement.lanes.iter().enumerate();
    let of_group = lanes.filter(move |(_, lane)| lane.link.map(usize::from) == Some(group));
    of_group.map(|(number, lane)| (number, Member { load: lane.load, may_leave: lane.may_leave }))
}

pub(super) fn level_of(placement: &DyssectPlacement<'_>, group: usize) -> u64 {
    level(&members(placement, group).map(|(_, member)| member).collect::<Vec<_>>())
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
