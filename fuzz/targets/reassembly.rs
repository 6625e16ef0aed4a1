//! Any packets for this machine: fragments of a few datagrams, and any bytes. Limits hold, and what comes out is a whole packet
//! made of bytes that came in at their places. Any bytes as reports that a packet was too big.
#![no_main]

use std::collections::HashMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rheostat_base::{DeviceId, Time};
use rheostat_ip::{PathMtus, Reassembled, Reassembler, ReassemblyConfig, TooBig};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{Headers, LinkType};

/// A protocol that nothing looks into (RFC 3692).
const EXPERIMENT: u8 = 253;

#[derive(Arbitrary, Debug)]
enum Input {
    Fragment { v6: bool, id: u8, offset: u16, len: u8, more: bool, fill: u8 },
    Bytes(Vec<u8>),
    Report(Vec<u8>),
    Pass(u16),
}

fuzz_target!(|inputs: Vec<Input>| {
    let config = ReassemblyConfig {
        datagrams: 3,
        pieces: 5,
        bytes: 30_000,
        timeout: Duration::from_secs(60),
    };
    let mut reassembler = Reassembler::new(config);
    let mut paths = PathMtus::default();
    let mut now = Time::from_secs(1);
    // Everything that may stand at a place of a datagram.
    let mut has_any_bytes = false;
    let mut sent: HashMap<(bool, u8), Vec<(usize, Vec<u8>)>> = HashMap::new();
    for input in inputs {
        let packet = match input {
            Input::Fragment { v6, id, offset, len, more, fill } => {
                let hosts =
                    if v6 { ["2001:db8::1", "2001:db8::2"] } else { ["10.0.0.1", "10.0.0.2"] };
                let [from, to] = hosts.map(|host| host.parse().unwrap());
                let id = id % 5;
                // Mostly near the start, so that datagrams become whole.
                let offset = if offset < 0xc000 { offset % 64 / 8 * 8 } else { offset & 0xfff8 };
                let part = vec![fill % 3; usize::from(len % 65)];
                sent.entry((v6, id)).or_default().push((offset.into(), part.clone()));
                let mut builder = FrameBuilder::new(
                    from,
                    to,
                    Transport::Protocol(EXPERIMENT),
                    Payload::Bytes(&part),
                );
                builder.id = id.into();
                builder.fragment = Some((offset, more));
                builder.to_vec()
            }
            Input::Bytes(bytes) => {
                has_any_bytes = true;
                bytes
            }
            Input::Report(bytes) => {
                if let Some(report) = TooBig::parse(&bytes) {
                    paths.note(&report, now);
                    let mtu = paths.get(report.destination.0, now);
                    assert!(mtu.is_none_or(|mtu| mtu >= 552));
                }
                continue;
            }
            Input::Pass(ms) => {
                now += Duration::from_millis(ms.into());
                reassembler.expire(now);
                continue;
            }
        };
        let Ok(headers) = Headers::parse_bytes(&packet, packet.len(), LinkType::Raw) else {
            continue;
        };
        if headers.fragment.is_none() {
            continue;
        }
        if let Reassembled::Whole(whole) = reassembler.take(&packet, &headers, DeviceId(0), now) {
            let headers = Headers::parse_bytes(&whole, whole.len(), LinkType::Raw);
            let Ok(headers) = headers else { continue };
            assert!(headers.fragment.is_none());
            let (from, end) = (usize::from(headers.l4), headers.end as usize);
            assert_eq!(end, whole.len());
            if headers.protocol == EXPERIMENT && (whole[0] >> 4 == 6 || from == 20) {
                let v6 = whole[0] >> 4 == 6;
                let data = &whole[from..end];
                let fits = |(at, part): &(usize, Vec<u8>)| {
                    !part.is_empty() && data.get(*at..at + part.len()) == Some(&part[..])
                };
                let is_known = (0..5).any(|id| {
                    let parts = sent.get(&(v6, id)).map_or(&[][..], |parts| &parts[..]);
                    let covers = |place: usize| {
                        parts.iter().any(|p| fits(p) && (p.0..p.0 + p.1.len()).contains(&place))
                    };
                    (0..data.len()).all(covers)
                });
                // Packets of any bytes may be such fragments, too.
                assert!(is_known || has_any_bytes);
            }
        }
        assert!(reassembler.len() <= 3 && reassembler.allocated() <= 30_000);
    }
});
