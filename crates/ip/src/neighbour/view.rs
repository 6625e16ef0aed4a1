//! A lane's own copy of what it needs of the table.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use rheostat_packet::wire::MacAddress;

use super::entry::Visible;
use super::{NeighbourKey, Neighbours};

/// A neighbour's link address as a lane knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The link address.
    pub mac: MacAddress,
    /// Whether the table wants to be told that a packet was sent there.
    pub stale: bool,
}

/// The neighbours whose link address is known, as of the last [`View::follow`].
#[derive(Debug, Default)]
pub struct View {
    known: HashMap<NeighbourKey, Seen, Keyed>,
    version: u64,
}

impl View {
    /// A neighbour's link address, if it is known.
    #[inline]
    pub fn get(&self, key: &NeighbourKey) -> Option<Seen> {
        self.known.get(key).copied()
    }

    /// Catches up with the table.
    pub fn follow(&mut self, table: &Neighbours) {
        match table.changes_since(self.version) {
            Some(changes) => {
                for key in changes {
                    self.note(table, key);
                }
            }
            None => {
                self.known.clear();
                table.iter().for_each(|(key, ..)| self.note(table, key));
            }
        }
        self.version = table.version();
    }

    fn note(&mut self, table: &Neighbours, key: NeighbourKey) {
        match table.visible(&key) {
            Visible::Known { mac, stale } => self.known.insert(key, Seen { mac, stale }),
            Visible::Asked | Visible::Nothing => self.known.remove(&key),
        };
    }
}

/// Hashes keys with two multiplications. The seed is random; even an attacker that could choose colliding keys gets
/// no more of them into the table than its limit.
#[derive(Clone, Copy, Debug)]
struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Keyed {
        Keyed(RandomState::new().build_hasher().finish() | 1)
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// A hash under way.
struct Folded(u64);

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
