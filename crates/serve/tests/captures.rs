//! The captures of `RHEO_TRACES` played at a listener.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_packet::wire::{TcpFlags, TcpSegment, ethernet};
use rheostat_packet::{FlowKey, Headers, LinkType, Network, checksum, tuple};
use rheostat_serve::echo::Echo;
use rheostat_testkit::captures;
use rheostat_traffic::Source;

use crate::rig::{LOCAL_V4, LOCAL_V6, MAC, PORT, Plan, Rig};

/// What was learned of connections: by the client's address and port, what to add to acknowledgements so that they are about our
/// numbers.
#[derive(Default)]
struct Splices {
    /// First numbers of the captured servers, from their SYNs with ACK.
    captured: HashMap<(IpAddr, u16), u32>,
    /// First numbers of our service.
    ours: HashMap<(IpAddr, u16), u32>,
}

/// A frame for our station with the IP packet of a captured one.
fn frame(packet: &[u8], headers: &Headers) -> Vec<u8> {
    let ethertype = if headers.network == Network::Ipv4 { ethernet::IPV4 } else { ethernet::IPV6 };
    let ip = packet.get(usize::from(headers.l3)..).unwrap_or_default();
    [&MAC[..], &[2, 0, 0, 0, 0, 9], &ethertype.to_be_bytes(), ip].concat()
}

/// The client's address on our link.
fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::new(10, 0, 0, 10 + v4.octets()[3] % 200).into(),
        IpAddr::V6(v6) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, v6.segments()[7]).into(),
    }
}

/// The frame of a captured segment as one for our listener, from a client on the link, with acknowledgements of what our service
/// has sent. `None` for what is no whole segment of TCP.
fn to_listener(packet: &[u8], headers: &Headers, splices: &mut Splices) -> Option<Vec<u8>> {
    let key: FlowKey = tuple::addresses(packet, headers)?;
    let end = (headers.end as usize).min(packet.len());
    let segment = packet.get(usize::from(headers.l4)..end)?;
    if headers.protocol != 6 || headers.fragment.is_some() {
        return None;
    }
    let view = TcpSegment::new(segment).ok()?;
    if view.flags().0 & (TcpFlags::SYN | TcpFlags::ACK) == TcpFlags::SYN | TcpFlags::ACK {
        splices.captured.insert((client(key.second()), view.destination_port()), view.seq());
    }
    let (from, port) = (client(key.first()), view.source_port());
    let to: IpAddr = if from.is_ipv4() { LOCAL_V4 } else { LOCAL_V6 }.parse().unwrap();
    let mut made = frame(packet, headers);
    let (l3, l4) = (14, 14 + usize::from(headers.l4 - headers.l3));
    let hosts = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (12, [from.octets(), to.octets()].concat()),
        (IpAddr::V6(from), IpAddr::V6(to)) => (8, [from.octets(), to.octets()].concat()),
        _ => unreachable!("chosen of one family"),
    };
    made.get_mut(l3 + hosts.0..l3 + hosts.0 + hosts.1.len())?.copy_from_slice(&hosts.1);
    made.get_mut(l4 + 2..l4 + 4)?.copy_from_slice(&PORT.to_be_bytes());
    let both = (splices.captured.get(&(from, port)), splices.ours.get(&(from, port)));
    if let (Some(captured), Some(ours)) = both {
        let ack = view.ack().wrapping_add(ours.wrapping_sub(*captured));
        made.get_mut(l4 + 8..l4 + 12)?.copy_from_slice(&ack.to_be_bytes());
    }
    if from.is_ipv4() {
        made[l3 + 10..l3 + 12].fill(0);
        let sum = checksum::of(&made[l3..l4]);
        made[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let end = (l3 + end - usize::from(headers.l3)).min(made.len());
    made[l4 + 16..l4 + 18].fill(0);
    let pseudo = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        _ => unreachable!("chosen of one family"),
    };
    let len = (end - l4) as u16;
    let sum = checksum::of(&[&pseudo[..], &[0, 6], &len.to_be_bytes(), &made[l4..end]].concat());
    made[l4 + 16..l4 + 18].copy_from_slice(&sum.to_be_bytes());
    Some(made)
}

/// Learns the first numbers of our service from its SYNs.
fn learn(rig: &mut Rig, splices: &mut Splices) {
    for sent in std::mem::take(&mut rig.stray) {
        let Ok(headers) = Headers::parse_bytes(&sent, sent.len(), LinkType::Ethernet) else {
            continue;
        };
        let key = tuple::addresses(&sent, &headers).expect("IP");
        let segment = &sent[usize::from(headers.l4)..headers.end as usize];
        if headers.protocol != 6 {
            continue;
        }
        let view = TcpSegment::new(segment).expect("a segment");
        if view.flags().0 & TcpFlags::SYN != 0 {
            splices.ours.insert((key.second(), view.destination_port()), view.seq());
        }
    }
}

#[test]
fn no_capture_confuses_a_listener_and_every_packet_is_accounted_for() {
    let (mut accepted, mut bytes_in, mut ignored) = (0, 0, 0);
    let ran = captures::for_each(|capture| {
        let mut rig = Rig::new(Echo, Plan { lanes: 3, ..Plan::default() });
        let (mut source, mut packet) = (capture.open(), Vec::new());
        let (mut splices, mut injected) = (Splices::default(), 0);
        while let Some(arrival) = source.next(&mut packet) {
            let wire_len = packet.len().max(arrival.wire_len as usize);
            let Ok(headers) = Headers::parse_bytes(&packet, wire_len, arrival.link) else {
                continue;
            };
            if !matches!(headers.network, Network::Ipv4 | Network::Ipv6) {
                continue;
            }
            // As it is, which is for none of our addresses mostly; and for the listener.
            let as_it_is = frame(&packet, &headers);
            let redirected = to_listener(&packet, &headers, &mut splices);
            for made in std::iter::once(as_it_is).chain(redirected) {
                rig.inject(made, injected);
                injected += 1;
            }
            rig.step(&mut []);
            learn(&mut rig, &mut splices);
        }
        for _ in 0..100 {
            rig.step(&mut []);
        }
        let totals = rig.control.totals();
        assert_eq!(rig.sample().received, injected as u64, "{}", capture.name());
        accepted += totals.accepted;
        bytes_in += totals.bytes_in;
        let all = totals.named().filter(|(name, _)| name.starts_with("ignored_"));
        ignored += all.map(|(_, count)| count).sum::<u64>();
        rig.finish();
    });
    if ran {
        println!("{accepted} connections, {bytes_in} bytes read, {ignored} segments ignored");
        assert!(accepted > 20 && bytes_in > 10_000 && ignored > 100);
    }
}
