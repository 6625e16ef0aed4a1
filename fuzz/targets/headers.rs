//! Any frame of any link type: what the headers point to lies in the packet, and the short way for
//! usual packets says what the long one says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_packet::{Headers, LinkType, Mempool, MempoolConfig, PoolCache, Tuple, usual};

const LINKS: [LinkType; 5] = [
    LinkType::Ethernet,
    LinkType::Raw,
    LinkType::Null,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
];

thread_local! {
    static POOL: Mempool =
        Mempool::new(&MempoolConfig { buffers: 8, data_room: 2_048, headroom: 0 }).unwrap();
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (link, beyond, bytes) = input;
    if bytes.is_empty() || bytes.len() > 2_048 {
        return;
    }
    let mut cache = PoolCache::new(POOL.with(Mempool::clone));
    let mut packet = cache.alloc_from(bytes).unwrap();
    packet.set_link(LINKS[usize::from(link) % LINKS.len()]);
    packet.set_wire_len(bytes.len() as u32 + u32::from(beyond));
    let parsed = Headers::parse(&packet);
    let short =
        usual::v4(&packet).or_else(|| usual::v6(&packet)).or_else(|| usual::tagged(&packet));
    if let Some((headers, key)) = short {
        assert_eq!(parsed, Ok(headers));
        assert_eq!(Tuple::of(&packet, &headers), Tuple::Flow(key));
    }
    if let Ok(headers) = parsed {
        assert!(headers.l3 <= headers.l4);
        assert!(u32::from(headers.l4) <= headers.end);
        assert!(headers.end <= packet.wire_len());
        match Tuple::of(&packet, &headers) {
            Tuple::Flow(key) => assert!(headers.fragment.is_none() && key.zone() == headers.zone),
            Tuple::Fragment(key, fragment) => {
                assert_eq!(headers.fragment, Some(fragment));
                assert_eq!((key.first_port(), key.second_port()), (0, 0));
            }
            Tuple::IcmpError(_) | Tuple::None => {}
        }
    }
    cache.free(packet);
});
