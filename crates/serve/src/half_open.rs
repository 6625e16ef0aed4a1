//! The half-open connections of a shard: what a SYN leaves until its sender acknowledges.

use rheostat_base::DeviceId;
use rheostat_packet::FlowKey;
use rheostat_tcp::HalfOpen;

use crate::slab::Slab;

/// No place.
const NONE: u32 = u32::MAX;

/// A half-open connection: two cache lines.
pub(crate) struct HalfOpenEntry {
    /// The key of packets that arrive.
    pub(crate) key: FlowKey,
    pub(crate) tcp: HalfOpen,
    /// What the index has of the key's hash.
    pub(crate) tag: u32,
    pub(crate) listener: u16,
    /// The device packets arrive on.
    pub(crate) device: DeviceId,
    /// The next older one and the next younger one.
    neighbours: [u32; 2],
}

// A flood of SYNs fills as many of them as there may be. No more for being optional: it is what a place has.
const _: () = assert!(size_of::<Option<HalfOpenEntry>>() <= 128);

impl HalfOpenEntry {
    pub(crate) fn new(
        (key, tag): (FlowKey, u32),
        tcp: HalfOpen,
        listener: u16,
        device: DeviceId,
    ) -> HalfOpenEntry {
        HalfOpenEntry { key, tcp, tag, listener, device, neighbours: [NONE; 2] }
    }
}

/// The half-open connections of a shard, in the order in which their SYNs came.
pub(crate) struct HalfOpens {
    pub(crate) entries: Slab<HalfOpenEntry>,
    /// The places of the oldest one and the youngest one.
    ends: [u32; 2],
}

impl Default for HalfOpens {
    fn default() -> HalfOpens {
        HalfOpens { entries: Slab::default(), ends: [NONE; 2] }
    }
}

impl HalfOpens {
    /// The oldest one, and its place.
    pub(crate) fn oldest(&self) -> Option<(u32, &HalfOpenEntry)> {
        let [oldest, _] = self.ends;
        Some((oldest, self.entries.get(oldest)?))
    }

    /// Enters the youngest one, and returns its place.
    pub(crate) fn insert(&mut self, entry: HalfOpenEntry) -> u32 {
        let [_, before] = self.ends;
        let place = self.entries.insert(HalfOpenEntry { neighbours: [before, NONE], ..entry });
        self.link(before, 1, place);
        self.link(NONE, 0, place);
        place
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<HalfOpenEntry> {
        let entry = self.entries.remove(place)?;
        let [older, younger] = entry.neighbours;
        self.link(older, 1, younger);
        self.link(younger, 0, older);
        Some(entry)
    }

    /// Has `to` follow `place` towards one end of the order: 0 the older one, 1 the younger one. No place means the end itself.
    fn link(&mut self, place: u32, side: usize, to: u32) {
        match self.entries.get_mut(place) {
            Some(entry) => entry.neighbours[side] = to,
            None => self.ends[1 - side] = to,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use rheostat_base::Time;
    use rheostat_tcp::{Config, Header, Initial, Segment, SequenceNumber};

    use super::*;

    fn entry(number: u32) -> HalfOpenEntry {
        let header = Header { syn: true, ..Header::default() };
        let initial = Initial { sequence: SequenceNumber(0), stamp_offset: 0 };
        let (syn, timeout) = (Segment { header, payload: &[] }, Duration::from_secs(60));
        let tcp = HalfOpen::accept(&Config::default(), initial, &syn, timeout, Time::ZERO).unwrap();
        HalfOpenEntry::new((FlowKey::NONE, number), tcp, 0, DeviceId(0))
    }

    #[test]
    fn the_oldest_is_the_one_that_came_first_whatever_left_in_between() {
        let (mut half_opens, mut model) = (HalfOpens::default(), VecDeque::new());
        let mut state = 1_u64;
        for number in 0..5_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match (state >> 33) as usize % 3 {
                0 | 1 if model.len() < 30 => {
                    model.push_back((half_opens.insert(entry(number)), number));
                }
                _ if !model.is_empty() => {
                    let at = (state >> 40) as usize % model.len();
                    let (place, number) = model.remove(at).unwrap();
                    assert_eq!(half_opens.remove(place).map(|entry| entry.tag), Some(number));
                }
                _ => {}
            }
            let oldest = half_opens.oldest().map(|(place, entry)| (place, entry.tag));
            assert_eq!((half_opens.entries.len(), oldest), (model.len(), model.front().copied()));
        }
    }
}
