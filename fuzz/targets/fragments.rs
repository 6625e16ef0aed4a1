//! Any sequence of fragments: none is lost, none comes out twice, limits hold.
#![no_main]

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rheostat_base::Time;
use rheostat_packet::{FlowKey, Fragment, Mbuf, Mempool, MempoolConfig, PoolCache};
use rheostat_state::{DatagramId, FragmentConfig, FragmentTracker, Tracked};

#[derive(Arbitrary, Debug)]
struct Piece {
    id: u8,
    offset: u8,
    len: u8,
    more: bool,
    pass_ms: u16,
}

thread_local! {
    static POOL: Mempool =
        Mempool::new(&MempoolConfig { buffers: 512, data_room: 64, headroom: 0 }).unwrap();
}

fuzz_target!(|pieces: Vec<Piece>| {
    if pieces.len() > 300 {
        return;
    }
    let pool = POOL.with(Mempool::clone);
    let mut cache = PoolCache::new(pool.clone());
    let config = FragmentConfig {
        datagrams: 4,
        pieces: 6,
        held: 9,
        timeout_v4: Duration::from_secs(30),
        timeout_v6: Duration::from_secs(60),
    };
    let mut tracker = FragmentTracker::new(config);
    let mut now = Time::ZERO;
    let mut inside = HashSet::new();
    let out = |packet: Mbuf, inside: &mut HashSet<u32>, cache: &mut PoolCache| {
        assert!(inside.remove(&packet.stamp()), "a fragment came out twice");
        cache.free(packet);
    };
    for (number, piece) in pieces.iter().enumerate() {
        now += Duration::from_millis(piece.pass_ms.into());
        let mut packet = cache.alloc(40).unwrap();
        packet.set_stamp(number as u32);
        inside.insert(number as u32);
        let hosts = FlowKey::v4((Ipv4Addr::new(10, 0, 0, 1), 0), (Ipv4Addr::BROADCAST, 0), 17, 0);
        let offset = u16::from(piece.offset % 16) * 8;
        let fragment = Fragment {
            id: (piece.id % 7).into(),
            offset,
            len: u16::from(piece.len),
            more: piece.more,
        };
        let key = FlowKey::v4((Ipv4Addr::new(10, 0, 0, 1), 5), (Ipv4Addr::BROADCAST, 6), 17, 0);
        let first = (offset == 0).then_some(key);
        let datagram = DatagramId::new(&hosts, fragment.id);
        match tracker.track(datagram, fragment, first, packet, now) {
            Tracked::Release { packet, .. } | Tracked::Drop { packet, .. } => {
                out(packet, &mut inside, &mut cache);
            }
            Tracked::Hold => {}
        }
        while let Some((_, packet)) = tracker.next_released() {
            out(packet, &mut inside, &mut cache);
        }
        tracker.expire(now);
        while let Some((_, packet)) = tracker.next_dropped() {
            out(packet, &mut inside, &mut cache);
        }
        assert_eq!(tracker.held(), inside.len(), "what went in and did not come out is held");
        assert!(tracker.held() <= 9 && tracker.datagrams() <= 4);
    }
    for packet in tracker.drain() {
        out(packet, &mut inside, &mut cache);
    }
    assert!(inside.is_empty(), "fragments were lost: {inside:?}");
    drop((tracker, cache));
    assert_eq!(pool.available(), pool.capacity(), "buffers were lost");
});
