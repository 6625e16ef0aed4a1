//! The table against a map, and what holds across a flow's life.

mod detached;
mod life;
mod model;
mod open;
mod schedule;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::Family;

use super::*;

/// The key of flow `number`: every third one is of IPv6.
fn key(number: u32) -> FlowKey {
    let port = (number % 50_000) as u16;
    if number % 3 == 2 {
        let first = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number));
        FlowKey::v6((first, port), (Ipv6Addr::LOCALHOST, 53), 17, 0)
    } else {
        let first = Ipv4Addr::from_bits(0x0a00_0000 | number);
        FlowKey::v4((first, port), (Ipv4Addr::new(192, 0, 2, 1), 80), 6, 0)
    }
}

fn hash(key: &FlowKey) -> FlowHash {
    FlowHasher::fixed().hash(key)
}

fn table(capacity: usize, layout: StateLayout) -> FlowTable {
    let config = TableConfig { capacity, aliases: true };
    FlowTable::new(config, Arc::new(layout), FlowHasher::fixed()).unwrap()
}

impl FlowTable {
    fn insert_key(&mut self, key: &FlowKey, now: Time) -> Result<FlowId, TableFull> {
        self.insert(hash(key), key, now)
    }

    /// Looks `key` up in all ways there are.
    fn look_up(&self, key: &FlowKey) -> Option<FlowId> {
        let hash = hash(key);
        self.prefetch_hint().prefetch(hash);
        let found = self.find(hash, key, self.probe(hash, key.family()));
        assert_eq!(found, self.find_now(hash, key));
        assert_eq!(found, self.find(hash, key, Probe(0)), "a wrong hint changes nothing");
        assert_eq!(found, self.find(hash, key, Probe(u32::MAX - 1)), "nor does a wild one");
        found
    }
}
