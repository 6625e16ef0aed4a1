//! The external ports of a shard, for mappings that do not depend on the remote endpoint: each belongs
//! to one mapping at most.

use std::time::Duration;

use rheostat_base::Time;

use super::mapping::MappingId;

/// The ports of a shard, one set for each external address and protocol, made when it is first needed.
/// In a set, a port is named by its rank among those of its class.
#[derive(Debug)]
pub(super) struct PortSets {
    sets: Vec<Option<Box<[Slot]>>>,
    size: usize,
}

/// What a port is used for.
#[derive(Clone, Copy, Debug, Default)]
struct Slot(u32);

/// Set for a port that rests; the other bits tell until when.
const RESTING: u32 = 1 << 31;
/// Resting times are counted in these.
const TICK_NANOS: u64 = 1 << 32;

/// Protocols with ports or identifiers that can be chosen.
pub(super) const PROTOCOLS: [u8; 4] = [6, 17, 1, 136];

/// One port of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    set: usize,
    rank: usize,
}

/// Whether a protocol has ports, or identifiers, that a NAT can choose.
pub(super) fn are_choosable(protocol: u8) -> bool {
    PROTOCOLS.contains(&protocol)
}

impl PortSets {
    /// Sets of `size` ports at most, for `addresses` external addresses.
    pub(super) fn new(addresses: usize, size: usize) -> PortSets {
        PortSets { sets: (0..addresses * PROTOCOLS.len()).map(|_| None).collect(), size }
    }

    /// The place of a port, given its rank. `None` when the protocol's ports cannot be chosen.
    pub(super) fn place(&self, address: u16, protocol: u8, rank: usize) -> Option<Place> {
        let protocol = PROTOCOLS.iter().position(|known| *known == protocol)?;
        Some(Place { set: usize::from(address) * PROTOCOLS.len() + protocol, rank })
    }

    /// Whether a port can be had at `now`.
    pub(super) fn is_usable(&self, place: Place, now: Time) -> bool {
        match self.slot(place) {
            Slot(0) => true,
            Slot(slot) if slot & RESTING != 0 => {
                // Compared as the counts wrap around, which takes centuries.
                let left = (slot & !RESTING).wrapping_sub(tick(now)) & !RESTING;
                left == 0 || left > RESTING / 2
            }
            Slot(_) => false,
        }
    }

    /// The mapping that has a port.
    pub(super) fn mapping(&self, place: Place) -> Option<MappingId> {
        match self.slot(place) {
            Slot(0) => None,
            Slot(slot) if slot & RESTING != 0 => None,
            Slot(slot) => Some(MappingId(slot - 1)),
        }
    }

    /// Gives a port to a mapping.
    pub(super) fn occupy(&mut self, place: Place, mapping: MappingId) {
        *self.slot_mut(place) = Slot(mapping.0 + 1);
    }

    /// Lets a port rest from `now` on, before another mapping can have it: up to eight seconds longer than
    /// `rest`, but for no time at all if that is zero.
    pub(super) fn release(&mut self, place: Place, now: Time, rest: Duration) {
        let resting = Slot(tick(now + rest).wrapping_add(1) | RESTING);
        *self.slot_mut(place) = if rest.is_zero() { Slot(0) } else { resting };
    }

    fn slot(&self, Place { set, rank }: Place) -> Slot {
        self.sets[set].as_ref().map_or(Slot(0), |slots| slots[rank])
    }

    fn slot_mut(&mut self, Place { set, rank }: Place) -> &mut Slot {
        let size = self.size;
        let slots = self.sets[set].get_or_insert_with(|| vec![Slot(0); size].into_boxed_slice());
        &mut slots[rank]
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
        let mut sets = PortSets::new(2, 504);
        let place = sets.place(1, 17, 300).unwrap();
        let now = Time::from_secs(1_800_000_000);
        assert!(sets.is_usable(place, now) && sets.mapping(place).is_none());
        sets.occupy(place, MappingId(7));
        assert!(!sets.is_usable(place, now));
        assert_eq!(sets.mapping(place), Some(MappingId(7)));
        assert_eq!(sets.mapping(sets.place(1, 6, 300).unwrap()), None);
        assert_eq!(sets.mapping(sets.place(0, 17, 300).unwrap()), None);
        sets.release(place, now, Duration::from_secs(120));
        assert_eq!(sets.mapping(place), None);
        assert!(!sets.is_usable(place, now));
        assert!(!sets.is_usable(place, now + Duration::from_secs(119)));
        assert!(sets.is_usable(place, now + Duration::from_secs(129)));
        assert!(sets.is_usable(place, now + Duration::from_secs(1_000_000_000)));
        sets.release(place, now, Duration::ZERO);
        assert!(sets.is_usable(place, now));
        assert_eq!(sets.place(0, 47, 1), None);
    }
}
