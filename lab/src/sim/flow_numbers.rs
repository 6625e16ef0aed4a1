//! Numbers for flows, as few as will do.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use rheostat_packet::FlowKey;

/// Gives each direction of a flow a number. The number of one that has been silent for long is given to
/// another, so that tables by number stay as small as the traffic allows.
///
/// What is numbered is a place in a table of the youngest packet that left, and packets are numbered
/// upwards. So a number may change hands once all packets of its former flow are gone: after at least as
/// many others as can be under way.
pub(super) struct FlowNumbers {
    /// Flows of the present generation, and of the one before.
    young: Map,
    old: Map,
    free: Vec<u32>,
    next: u32,
    /// Packets that make a generation, and those that the present one still has.
    generation: u64,
    left: u64,
}

type Map = HashMap<(FlowKey, bool), u32, BuildHasherDefault<Words>>;

impl FlowNumbers {
    /// Numbers for flows of which at most `in_flight` packets are under way at the same time.
    pub(super) fn new(in_flight: u64) -> FlowNumbers {
        // Long enough that what turning over costs is spread over many packets.
        let generation = in_flight.max(1 << 19);
        FlowNumbers {
            young: Map::default(),
            old: Map::default(),
            free: Vec::new(),
            next: 0,
            generation,
            left: generation,
        }
    }

    /// The number of one direction of a flow, of which a packet has come.
    pub(super) fn number(&mut self, key: FlowKey, forward: bool) -> u32 {
        if self.left == 0 {
            self.left = self.generation;
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.free.extend(old.into_values());
            // In an order that does not depend on where a map put them.
            self.free.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.left -= 1;
        let FlowNumbers { young, old, free, next, .. } = self;
        *young.entry((key, forward)).or_insert_with(|| {
            old.remove(&(key, forward)).or_else(|| free.pop()).unwrap_or_else(|| {
                *next += 1;
                *next - 1
            })
        })
    }
}

/// Hashes keys of flows: multiply and turn, word by word. The keys are those of a benchmark, so they are
/// not chosen to collide.
#[derive(Default)]
struct Words(u64);

impl Words {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Words {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn key(number: u32) -> FlowKey {
        FlowKey::v4((Ipv4Addr::from_bits(number), 1), (Ipv4Addr::LOCALHOST, 2), 17, 0)
    }

    #[test]
    fn a_number_changes_hands_only_after_a_whole_generation_of_silence() {
        let mut numbers = FlowNumbers::new(0);
        let generation = numbers.generation as u32;
        let (first, back) = (numbers.number(key(0), true), numbers.number(key(0), false));
        assert_ne!(first, back, "each direction has its own");
        // The rest of the generation, and the next one but for one packet, in which it speaks again.
        for other in 0..generation {
            assert!(![first, back].contains(&numbers.number(key(1 + other % 3), true)));
        }
        assert_eq!(numbers.number(key(0), true), first);
        // Two more generations of silence of the other direction.
        for other in 0..2 * generation {
            numbers.number(key(1 + other % 3), true);
            numbers.number(key(0), true);
        }
        assert_eq!(numbers.number(key(9), true), back, "taken over");
        assert_eq!(numbers.number(key(0), true), first);
        assert_eq!(numbers.next, 5);
    }
}
