//! Addresses and ports of any packet rewritten: a checksum that was right is right afterwards, and
//! one that was wrong is not made right.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::wire::rewrite::Rewrite;
use rheostat_packet::{Headers, LinkType, Mempool, MempoolConfig, Network, PoolCache};

thread_local! {
    static POOL: Mempool =
        Mempool::new(&MempoolConfig { buffers: 8, data_room: 2_048, headroom: 0 }).unwrap();
}

fuzz_target!(|input: (u128, u16, u8, &[u8])| {
    let (address, port, what, bytes) = input;
    if bytes.is_empty() || bytes.len() > 2_048 {
        return;
    }
    let mut cache = PoolCache::new(POOL.with(Mempool::clone));
    let mut packet = cache.alloc_from(bytes).unwrap();
    packet.set_link(LinkType::Raw);
    if let Ok(headers) = Headers::parse(&packet) {
        let before = evaluate_packet(&packet, &headers);
        let field = usize::from(headers.l4)
            + match headers.protocol {
                6 => 16,
                17 => 6,
                _ => 2,
            };
        let is_zero = packet
            .data()
            .get(field..field + 2)
            .is_none_or(|sum| sum == [0, 0] || sum == [255, 255]);
        let address: IpAddr = match headers.network {
            Network::Ipv4 => Ipv4Addr::from_bits(address as u32).into(),
            _ => Ipv6Addr::from_bits(address).into(),
        };
        if let Ok(mut rewrite) = Rewrite::new(packet.data_mut(), &headers) {
            let done = match what % 4 {
                0 => rewrite.set_source(address),
                1 => rewrite.set_destination(address),
                2 => rewrite.set_source_port(port),
                _ => rewrite.set_destination_port(port),
            };
            drop(rewrite);
            let after = Headers::parse(&packet);
            // A query whose identifier changes is still the packet it was.
            assert_eq!(after, Ok(headers), "a rewritten packet has other layers");
            if done.is_ok() && before == Some(Validity::Valid) {
                assert_eq!(evaluate_packet(&packet, &headers), Some(Validity::Valid));
            }
            // Zero has two forms in one's complement, and an update cannot tell which was meant.
            if done.is_ok() && before == Some(Validity::Invalid) && !is_zero {
                assert_ne!(evaluate_packet(&packet, &headers), Some(Validity::Valid));
            }
        }
    }
    cache.free(packet);
});
