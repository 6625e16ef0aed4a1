//! The external ports of a shard, for mappings that do not depend on the remote endpoint: each belongs
//! to one mapping at most.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use rheostat_base::Time;

use super::TCP;
use super::mapping::{MappingId, Mappings, Use};
use super::rank_set::RankSet;
use super::shortage::Shortage;

/// The ports of a shard, one set for each external address and protocol, made when it is first needed.
#[derive(Debug)]
pub(super) struct PortSets {
    sets: Vec<Option<Box<PortSet>>>,
    /// What of each set is asked for often: all of a shard's lie in a few lines.
    accounts: Vec<Account>,
    /// Sets whose ports are short.
    short: usize,
}

/// What is known of a set without a look at it.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Ports of mappings with a flow that is not over.
    in_use: u32,
    /// When the first port that rests has rested; never, if none does.
    wakes: u32,
}

/// No port rests.
const NEVER: u32 = u32::MAX;

/// The ports of one external address and protocol that are the shard's to give out. A port is named by its
/// rank among those of its class. Every method takes a time that does not depend on how many are in use, but for finding
/// out what others can have once ports are short.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct PortSet {
    // What giving a port out and taking it back touch.
    /// Ports that belong to no host and have rested.
    pub(super) free: RankSet,
    slots: Box<[Slot]>,
    /// What others can have, while ports are short.
    shortage: Option<Box<Shortage>>,
    // The rest.
    /// Ports that rest, by the end of it. A port that was given out again before is named here still.
    resting: BTreeMap<u32, Vec<u16>>,
}

// Giving out a port and taking it back touch these lines, and that of the port's slot.
const _: () = assert!(std::mem::offset_of!(PortSet, resting) == 128);

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
        let count = addresses * PROTOCOLS.len();
        let accounts = vec![Account { in_use: 0, wakes: NEVER }; count];
        PortSets { sets: (0..count).map(|_| None).collect(), accounts, short: 0 }
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

    /// Asks for what giving out a port of an address and a protocol touches first.
    #[inline]
    pub(super) fn prefetch(&self, address: u16, protocol: u8) {
        if let Some(set) = self.get(address, protocol) {
            set.free.prefetch();
        }
    }

    /// As [`PortSets::get`], to change it.
    pub(super) fn get_mut(&mut self, address: u16, protocol: u8) -> Option<&mut PortSet> {
        self.sets.get_mut(PortSets::place(address, protocol)?)?.as_deref_mut()
    }

    /// Finds out what others can have of a set, whose ports are short from now on. The time grows with the ports of
    /// the set, unless they were short already.
    pub(super) fn note_shortage(&mut self, address: u16, protocol: u8, mappings: &Mappings) {
        let Some(set) = self.get_mut(address, protocol) else { return };
        let is_new = set.shortage.is_none();
        set.note_shortage(protocol == TCP, mappings);
        self.short += usize::from(is_new);
    }

    /// Takes a port back from its mapping, and lets it rest (see [`PortSet::release`]).
    pub(super) fn release(
        &mut self,
        (address, protocol): (u16, u8),
        rank: usize,
        now: Time,
        rest: Duration,
    ) {
        let Some((set, account)) = self.with_account(address, protocol) else { return };
        let was_short = set.shortage.is_some();
        account.in_use -= 1;
        if let Some(until) = set.release(rank, now, rest, protocol == TCP) {
            account.wakes = account.wakes.min(until);
        }
        let is_over = was_short && set.shortage.is_none();
        self.short -= usize::from(is_over);
    }

    /// Frees the ports of a set that have rested at `now`.
    #[inline]
    pub(super) fn wake(&mut self, address: u16, protocol: u8, now: Time) {
        let Some(place) = PortSets::place(address, protocol) else { return };
        if self.accounts.get(place).is_some_and(|account| account.wakes <= tick(now))
            && let Some((set, account)) = self.with_account(address, protocol)
        {
            account.wakes = set.wake(now);
        }
    }

    /// Gives a port that no mapping has to a mapping.
    pub(super) fn occupy(&mut self, address: u16, protocol: u8, rank: usize, mapping: MappingId) {
        if let Some((set, account)) = self.with_account(address, protocol) {
            account.in_use += 1;
            set.occupy(rank, mapping);
        }
    }

    /// Takes a port away from its mapping, for another to have it at once.
    pub(super) fn vacate(&mut self, address: u16, protocol: u8, rank: usize) {
        if let Some((set, account)) = self.with_account(address, protocol) {
            account.in_use -= 1;
            set.slots[rank] = Slot(0);
        }
    }

    /// What a mapping that has one of the ports is to others changes. Its rank and its host are asked for while ports are
    /// short.
    pub(super) fn use_changes(
        &mut self,
        (address, protocol): (u16, u8),
        (before, after): (Use, Use),
        port: impl FnOnce() -> (usize, Ipv4Addr),
    ) {
        let Some(place) = PortSets::place(address, protocol) else { return };
        if let Some(account) = self.accounts.get_mut(place) {
            account.in_use += u32::from(before == Use::Closed);
            account.in_use -= u32::from(after == Use::Closed);
        }
        if self.short > 0
            && let Some(shortage) = self.get_mut(address, protocol).and_then(PortSet::shortage_mut)
        {
            let (rank, host) = port();
            shortage.use_changes(rank, host, before, after);
        }
    }

    /// A set and its account.
    fn with_account(&mut self, address: u16, protocol: u8) -> Option<(&mut PortSet, &mut Account)> {
        let place = PortSets::place(address, protocol)?;
        Some((self.sets.get_mut(place)?.as_deref_mut()?, self.accounts.get_mut(place)?))
    }

    /// The ports in use of each set, by the place of the address and of the protocol.
    pub(super) fn in_use(&self) -> impl Iterator<Item = (usize, usize)> {
        let sets = self.sets.iter().zip(&self.accounts).enumerate();
        let made = sets.filter(|(_, (set, _))| set.is_some());
        made.map(|(place, (_, account))| (place, account.in_use as usize))
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
            shortage: None,
            resting: BTreeMap::new(),
        }
    }

    /// Frees the ports that have rested at `now`, and returns when the next one has.
    fn wake(&mut self, now: Time) -> u32 {
        while let Some(first) = self.resting.first_entry().filter(|first| *first.key() <= tick(now))
        {
            let (until, ranks) = first.remove_entry();
            for rank in ranks.into_iter().map(usize::from) {
                if self.slots[rank] == Slot(until | RESTING) {
                    self.slots[rank] = Slot(0);
                    self.free.insert(rank);
                    if let Some(shortage) = &mut self.shortage {
                        shortage.spent.remove(rank);
                    }
                }
            }
        }
        self.resting.first_key_value().map_or(NEVER, |(until, _)| *until)
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

    fn occupy(&mut self, rank: usize, mapping: MappingId) {
        self.free.remove(rank);
        if let Some(shortage) = &mut self.shortage {
            shortage.spent.remove(rank);
        }
        self.slots[rank] = Slot(mapping.0 + 1);
    }

    /// Lets a port rest from `now` on, before another mapping can have it: up to eight seconds longer than
    /// `rest`, but for no time at all if that is zero. One that is `spendable` is given out before if there
    /// is no other. Returns until when it rests.
    fn release(&mut self, rank: usize, now: Time, rest: Duration, spendable: bool) -> Option<u32> {
        self.slots[rank] = Slot(0);
        self.shortage.take_if(|shortage| shortage.is_over_after_release());
        if rest.is_zero() {
            self.free.insert(rank);
            return None;
        }
        let until = tick(now + rest).wrapping_add(1) & !RESTING;
        self.slots[rank] = Slot(until | RESTING);
        self.resting.entry(until).or_default().push(rank as u16);
        if let Some(shortage) = &mut self.shortage
            && spendable
        {
            shortage.spent.insert(rank);
        }
        Some(until)
    }

    /// What others can have while ports are short; `None` as long as nothing has shown that they are.
    pub(super) fn shortage(&self) -> Option<&Shortage> {
        self.shortage.as_deref()
    }

    /// As [`PortSet::shortage`], to change it.
    pub(super) fn shortage_mut(&mut self) -> Option<&mut Shortage> {
        self.shortage.as_deref_mut()
    }

    /// Finds out what others can have, if that is not known yet, and has it known for longer if it is.
    fn note_shortage(&mut self, spendable: bool, mappings: &Mappings) {
        if let Some(shortage) = &mut self.shortage {
            return shortage.note();
        }
        let mut shortage = Shortage::new(self.slots.len());
        let mut waiting = Vec::new();
        for (rank, &Slot(slot)) in self.slots.iter().enumerate() {
            if slot & RESTING != 0 {
                if spendable {
                    shortage.spent.insert(rank);
                }
            } else if slot != 0 {
                let mapping = mappings.get(MappingId(slot - 1));
                match mapping.usage() {
                    Use::Closed => shortage.spent.insert(rank),
                    Use::Waiting => {
                        waiting.push((mapping.waits_since(), rank, mapping.inner().address));
                    }
                    Use::Held | Use::Lost => {}
                }
            }
        }
        waiting.sort_unstable();
        for (_, rank, host) in waiting {
            shortage.waiting.add(host, rank);
        }
        self.shortage = Some(Box::new(shortage));
    }
}

/// Times in units of about four seconds, less the highest bit.
fn tick(time: Time) -> u32 {
    (time.as_nanos() / TICK_NANOS) as u32 & !RESTING
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: u8 = 17;

    fn in_use(sets: &PortSets) -> usize {
        sets.in_use().map(|(_, in_use)| in_use).sum()
    }

    #[test]
    fn a_port_is_used_rests_and_can_be_had_again() {
        let mut sets = PortSets::new(2);
        let make = || PortSet::new(504, |rank| rank != 7);
        let now = Time::from_secs(1_800_000_000);
        let set = sets.get_or_make(1, UDP, make).unwrap();
        assert!(!set.free.contains(7) && set.free.len() == 503 && set.mapping(300).is_none());
        sets.occupy(1, UDP, 300, MappingId(7));
        let set = |sets: &PortSets| {
            sets.get(1, UDP).map(|set| (set.mapping(300), set.free.contains(300)))
        };
        assert_eq!((set(&sets), in_use(&sets)), (Some((Some(MappingId(7)), false)), 1));
        sets.release((1, UDP), 300, now, Duration::from_secs(120));
        assert_eq!((set(&sets), in_use(&sets)), (Some((None, false)), 0));
        for (later, usable) in [(0, false), (119, false), (129, true), (1_000_000_000, true)] {
            sets.wake(1, UDP, now + Duration::from_secs(later));
            assert_eq!(set(&sets), Some((None, usable)), "{later}");
        }
        sets.occupy(1, UDP, 300, MappingId(8));
        sets.release((1, UDP), 300, now, Duration::ZERO);
        assert_eq!(set(&sets), Some((None, true)));
        assert!(sets.get(1, 6).is_none() && sets.get(0, UDP).is_none());
        assert!(sets.get_or_make(0, 47, make).is_none());
    }

    #[test]
    fn a_port_that_rests_can_be_had_before_and_then_rests_no_more() {
        let mut sets = PortSets::new(1);
        sets.get_or_make(0, TCP, || PortSet::new(64, |_| true)).unwrap();
        sets.note_shortage(0, TCP, &Mappings::default());
        let (now, rest) = (Time::from_secs(1_000), Duration::from_secs(120));
        sets.occupy(0, TCP, 3, MappingId(0));
        sets.release((0, TCP), 3, now, rest);
        let set = sets.get(0, TCP).unwrap();
        let is_spent = |set: &PortSet| set.shortage().unwrap().spent.contains(3);
        assert!(is_spent(set) && set.rests_until(3).is_some_and(|end| end > now + rest));
        sets.occupy(0, TCP, 3, MappingId(1));
        sets.wake(0, TCP, now + rest * 2);
        let set = sets.get(0, TCP).unwrap();
        assert_eq!(set.mapping(3), Some(MappingId(1)));
        assert!(!set.free.contains(3) && !is_spent(set));
    }

    #[test]
    fn ports_that_rest_for_different_times_are_all_woken() {
        let mut sets = PortSets::new(1);
        sets.get_or_make(0, UDP, || PortSet::new(64, |_| true)).unwrap();
        let now = Time::from_secs(1_000);
        // The second wakes first, the third when the others have.
        for (rank, rest) in [(1, 200), (2, 60), (3, 400)] {
            sets.occupy(0, UDP, rank, MappingId(rank as u32));
            sets.release((0, UDP), rank, now, Duration::from_secs(rest));
        }
        for (later, free) in [(50, 61), (70, 62), (150, 62), (210, 63), (420, 64)] {
            sets.wake(0, UDP, now + Duration::from_secs(later));
            assert_eq!(sets.get(0, UDP).unwrap().free.len(), free, "{later}");
        }
    }
}
