//! The tracker against a naive oracle, and one by one what it must refuse, hold and forget.

mod cases;
mod oracle;

use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

use super::*;

/// Packets to feed a tracker with, distinguished by their stamps. Declare it before the tracker: a pool
/// whose packets outlive it is never freed.
struct Source {
    pool: Mempool,
    cache: PoolCache,
    stamp: u32,
}

impl Source {
    fn new() -> Source {
        let config = MempoolConfig { buffers: 512, data_room: 64, headroom: 0 };
        let pool = Mempool::new(&config).unwrap();
        Source { cache: PoolCache::new(pool.clone()), pool, stamp: 0 }
    }

    fn packet(&mut self) -> Mbuf {
        let mut packet = self.cache.alloc(8).unwrap();
        packet.set_stamp(self.stamp);
        self.stamp += 1;
        packet
    }

    /// Packets that are neither in the pool nor in the cache.
    fn outside(mut self) -> usize {
        self.cache.flush();
        self.pool.capacity() - self.pool.available()
    }
}

fn v4(id: u32) -> DatagramId {
    let (source, destination) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2));
    DatagramId::new(&FlowKey::v4((source, 0), (destination, 0), 17, 0), id)
}

fn v6(id: u32) -> DatagramId {
    let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(7));
    DatagramId::new(&FlowKey::v6((source, 0), (destination, 0), 17, 0), id)
}

fn flow(port: u16) -> FlowKey {
    FlowKey::v4((Ipv4Addr::LOCALHOST, port), (Ipv4Addr::LOCALHOST, 53), 17, 0)
}

fn part(offset: u16, len: u16, more: bool) -> Fragment {
    Fragment { id: 0, offset, len, more }
}

/// A verdict without its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Release(FlowKey),
    Hold,
    Drop(DropReason),
}

/// Everything that came of one fragment: its own fate, and those of held ones by their stamps.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    fate: Fate,
    released: Vec<(FlowKey, u32)>,
    dropped: Vec<(DropReason, u32)>,
}

/// Feeds one fragment; its stamp is the number of packets before it.
fn feed(
    tracker: &mut FragmentTracker,
    source: &mut Source,
    datagram: DatagramId,
    fragment: Fragment,
    key: Option<FlowKey>,
    now: Time,
) -> Outcome {
    let packet = source.packet();
    let stamp = packet.stamp();
    let fate = match tracker.track(datagram, fragment, key, packet, now) {
        Tracked::Release { key, packet } => {
            assert_eq!(packet.stamp(), stamp);
            Fate::Release(key)
        }
        Tracked::Hold => Fate::Hold,
        Tracked::Drop { reason, packet } => {
            assert_eq!(packet.stamp(), stamp);
            Fate::Drop(reason)
        }
    };
    let released = std::iter::from_fn(|| tracker.next_released());
    let released = released.map(|(key, packet)| (key, packet.stamp())).collect();
    let dropped = std::iter::from_fn(|| tracker.next_dropped());
    let dropped = dropped.map(|(reason, packet)| (reason, packet.stamp())).collect();
    Outcome { fate, released, dropped }
}
