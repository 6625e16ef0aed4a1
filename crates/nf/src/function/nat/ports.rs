//! The external ports of a shard, for mappings that do not depend on the remote endpoint: each belongs
//! to one mapping at most.

use std::collections::BTreeMap;
use std::time::Duration;

use rheostat_base::Time;

use super::mapping::MappingId;
use super::rank_set::RankSet;
use super::waiting::Waiting;

/// The ports of a shard, one set for each external address and protocol, made when it is first needed.
#[derive(Debug)]
pub(super) struct PortSets {
    sets: Vec<Option<Box<PortSet>>>,
}

/// The ports of one external address and protocol that are the shard's to give out. A port is named by its
/// rank among those of its class. Every method takes a time that does not depend on how many are in use.
#[derive(Debug)]
pub(super) struct PortSet {
    slots: Box<[Slot]>,
    /// Ports that belong to no host and have rested.
    pub(super) free: RankSet,
    /// Ports of TCP that serve another connection when none is free: those of mappings all of whose
    /// connections are over, and those that rest.
    pub(super) spent: RankSet,
    /// Ports of mappings none of whose flows is answered.
    pub(super) waiting: Waiting,
    /// Ports that rest, by the end of it. A port that was given out again before is named here still.
    resting: BTreeMap<u32, Vec<u16>>,
    /// Ports of mappings with a flow that is not over.
    pub(super) in_use: usize,
}

/// What a port is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot(u32);

/// Set for a port that rests; the other bits tell until when.
const RESTING: u32 = 1 << 31;
/// Resting times are counted in these.
const TICK_NANOS: u64 = 1 << 32;

/// Protocols with ports or identifiers that can be chosen.
pub(super) const PROTOCOLS: [u8; 4] = [6, 17, 1, 136];

/// Whether a protocol has ports, or identifiers, that a NAT can choose.
pub(super) fn are_choosable(protocol: u8) -> bool {
    PROTOCOLS.contains(&protocol)
}

impl PortSets {
    /// Sets for `addresses` external addresses.
    pub(super) fn new(addresses: usize) -> PortSets {
        PortSets { sets: (0..addresses * PROTOCOLS.len()).map(|_| None).collect() }
    }

    fn place(address: u16, protocol: u8) -> Option<usize> {
        let protocol = PROTOCOLS.iter().position(|known| *known == protocol)?;
        Some(usize::from(address) * PROTOCOLS.len() + protocol)
    }

    /// The set of an address and a protocol, made if it is not there yet. `None` when the protocol's ports
    /// cannot be chosen.
    pub(super) fn get_or_make(
        &mut self,
        address: u16,
        protocol: u8,
        make: impl FnOnce() -> PortSet,
    ) -> Option<&mut PortSet> {
        let set = self.sets.get_mut(PortSets::place(address, protocol)?)?;
        Some(set.get_or_insert_with(|| Box::new(make())))
    }

    /// The set of an address and a protocol, if it was ever needed.
    pub(super) fn get(&self, address: u16, protocol: u8) -> Option<&PortSet> {
        self.sets.get(PortSets::place(address, protocol)?)?.as_deref()
    }

    /// As [`PortSets::get`], to change it.
    pub(super) fn get_mut(&mut self, address: u16, protocol: u8) -> Option<&mut PortSet> {
        self.sets.get_mut(PortSets::place(address, protocol)?)?.as_deref_mut()
    }

    /// The ports in use of each set, by the place of the address and of the protocol.
    pub(super) fn in_use(&self) -> impl Iterator<Item = (usize, usize)> {
        let sets = self.sets.iter().enumerate();
        sets.filter_map(|(place, set)| set.as_ref().map(|set| (place, set.in_use)))
    }
}

impl PortSet {
    /// A set of `size` ports, of which those that `usable` names by their rank can be given out.
    pub(super) fn new(size: usize, usable: impl Fn(usize) -> bool) -> PortSet {
        let mut free = RankSet::new(size);
        (0..size).filter(|rank| usable(*rank)).for_each(|rank| free.insert(rank));
        PortSet {
            slots: vec![Slot(0); size].into_boxed_slice(),
            free,
            spent: RankSet::new(size),
            waiting: Waiting::default(),
            resting: BTreeMap::new(),
            in_use: 0,
        }
    }

    /// Frees the ports that have rested at `now`.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(first) = self.resting.first_entry().filter(|first| *first.key() <= tick(now))
        {
            let (until, ranks) = first.remove_entry();
            for rank in ranks.into_iter().map(usize::from) {
                if self.slots[rank] == Slot(until | RESTING) {
                    self.slots[rank] = Slot(0);
                    self.spent.remove(rank);
                    self.free.insert(rank);
                }
            }
        }
    }

    /// The mapping that has a port.
    pub(super) fn mapping(&self, rank: usize) -> Option<MappingId> {
        match self.slots.get(rank)? {
            Slot(0) => None,
            Slot(slot) if slot & RESTING != 0 => None,
            Slot(slot) => Some(MappingId(slot - 1)),
        }
    }

    /// The end of the rest of a port that rests.
    pub(super) fn rests_until(&self, rank: usize) -> Option<Time> {
        let Slot(slot) = *self.slots.get(rank)?;
        let nanos = u64::from(slot & !RESTING).saturating_mul(TICK_NANOS);
        (slot & RESTING != 0).then(|| Time::from_nanos(nanos))
    }

    /// Gives a port that no mapping has to a mapping.
    pub(super) fn occupy(&mut self, rank: usize, mapping: MappingId) {
        self.free.remove(rank);
        self.spent.remove(rank);
        self.slots[rank] = Slot(mapping.0 + 1);
        self.in_use += 1;
    }

    /// Takes a port away from its mapping, for another to have it at once.
    pub(super) fn vacate(&mut self, rank: usize) {
        self.slots[rank] = Slot(0);
        self.in_use -= 1;
    }

    /// Lets a port rest from `now` on, before another mapping can have it: up to eight seconds longer than
    /// `rest`, but for no time at all if that is zero. One that is `spendable` is given out before if there
    /// is no other.
    pub(super) fn release(&mut self, rank: usize, now: Time, rest: Duration, spendable: bool) {
        self.vacate(rank);
        if rest.is_zero() {
            self.free.insert(rank);
            return;
        }
        let until = tick(now + rest).wrapping_add(1) & !RESTING;
        self.slots[rank] = Slot(until | RESTING);
        self.resting.entry(until).or_default().push(rank as u16);
        if spendable {
            self.spent.insert(rank);
        }
    }
}

/// Times in units of about four seconds, less the highest bit.
fn tick(time: Time) -> u32 {
    (time.as_nanos() / TICK_NANOS) as u32 & !RESTING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_used_rests_and_can_be_had_again() {
        let mut sets = PortSets::new(2);
        let make = || PortSet::new(504, |rank| rank != 7);
        let now = Time::from_secs(1_800_000_000);
        let set = sets.get_or_make(1, 17, make).unwrap();
        assert!(!set.free.contains(7) && set.free.len() == 503 && set.mapping(300).is_none());
        set.occupy(300, MappingId(7));
        assert!(!set.free.contains(300));
        assert_eq!((set.mapping(300), set.in_use), (Some(MappingId(7)), 1));
        set.release(300, now, Duration::from_secs(120), false);
        assert_eq!((set.mapping(300), set.in_use), (None, 0));
        for (later, usable) in [(0, false), (119, false), (129, true), (1_000_000_000, true)] {
            set.wake(now + Duration::from_secs(later));
            assert_eq!(set.free.contains(300), usable, "{later}");
        }
        set.occupy(300, MappingId(8));
        set.release(300, now, Duration::ZERO, false);
        assert!(set.free.contains(300));
        assert!(sets.get(1, 6).is_none() && sets.get(0, 17).is_none());
        assert!(sets.get_or_make(0, 47, make).is_none());
    }

    #[test]
    fn a_port_that_rests_can_be_had_before_and_then_rests_no_more() {
        let mut set = PortSet::new(64, |_| true);
        let (now, rest) = (Time::from_secs(1_000), Duration::from_secs(120));
        set.occupy(3, MappingId(0));
        set.release(3, now, rest, true);
        assert!(set.spent.contains(3) && set.rests_until(3).is_some_and(|end| end > now + rest));
        set.occupy(3, MappingId(1));
        set.wake(now + rest * 2);
        assert_eq!(set.mapping(3), Some(MappingId(1)));
        assert!(!set.free.contains(3) && !set.spent.contains(3));
    }
}
