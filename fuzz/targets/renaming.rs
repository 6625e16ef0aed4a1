//! Any packet under other names: nothing but addresses and checksums changes, a checksum that was right is
//! right afterwards, one that was wrong is not made right, and the way back is the way there backwards.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::{Headers, LinkType, Mempool, MempoolConfig, PoolCache, Tuple};
use rheostat_traffic::replay::Names;

thread_local! {
    static POOL: Mempool =
        Mempool::new(&MempoolConfig { buffers: 8, data_room: 2_048, headroom: 0 }).unwrap();
}

const LINKS: [LinkType; 5] = [
    LinkType::Raw,
    LinkType::Ethernet,
    LinkType::Null,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
];

fn validity_of(bytes: &[u8], cut: u32, link: LinkType, headers: &Headers) -> Option<Validity> {
    let mut cache = PoolCache::new(POOL.with(Mempool::clone));
    let mut packet = cache.alloc_from(bytes).unwrap();
    packet.set_link(link);
    packet.set_wire_len(bytes.len() as u32 + cut);
    let validity = evaluate_packet(&packet, headers);
    cache.free(packet);
    validity
}

fuzz_target!(|input: (u64, u8, u8, &[u8])| {
    let (number, link, cut, bytes) = input;
    if bytes.is_empty() || bytes.len() > 2_048 {
        return;
    }
    let link = LINKS[usize::from(link) % LINKS.len()];
    // A few captured short.
    let cut = u32::from(cut.saturating_sub(200)) * 8;
    let wire_len = bytes.len() as u32 + cut;
    let before = Headers::parse_bytes(bytes, wire_len as usize, link);
    let mut frame = bytes.to_vec();
    let renamed = Names::new(7, number).rename(&mut frame, wire_len, link);
    let after = Headers::parse_bytes(&frame, wire_len as usize, link);
    assert_eq!(before, after, "a renamed packet has other layers");
    let Ok(headers) = before else {
        assert!(!renamed && frame == bytes, "a broken packet was changed");
        return;
    };
    let (old, new) = (Tuple::of_bytes(bytes, &headers), Tuple::of_bytes(&frame, &headers));
    match (old, new) {
        (Tuple::None, Tuple::None) => assert_eq!(frame, bytes),
        (Tuple::Flow(old), Tuple::Flow(new))
        | (Tuple::IcmpError(old), Tuple::IcmpError(new))
        | (Tuple::Fragment(old, _), Tuple::Fragment(new, _)) => {
            let names = Names::new(7, number);
            assert_eq!(names.of(old.first()), new.first());
            assert_eq!(names.of(old.second()), new.second());
            assert_eq!(
                (old.first_port(), old.second_port()),
                (new.first_port(), new.second_port())
            );
            assert_eq!((old.protocol(), old.zone()), (new.protocol(), new.zone()));
        }
        (old, new) => panic!("{old:?} became {new:?}"),
    }
    // Zero has two forms in one's complement, and an update cannot tell which was meant.
    let zeros = |frame: &[u8]| frame.windows(2).any(|word| word == [0, 0] || word == [255, 255]);
    match validity_of(bytes, cut, link, &headers) {
        Some(Validity::Invalid) if zeros(bytes) || zeros(&frame) => {}
        validity => assert_eq!(validity_of(&frame, cut, link, &headers), validity),
    }
    Names::new(7, number.wrapping_neg()).rename(&mut frame, wire_len, link);
    if !zeros(bytes) && !zeros(&frame) {
        assert_eq!(frame, bytes, "the way back leads elsewhere");
    }
});
