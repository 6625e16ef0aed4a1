//! A stack with packets in memory and time in numbers.

mod bench;
mod burst;
mod forward;
mod reassemble;
mod transport;

use std::sync::Mutex;

use proptest::prelude::*;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};

use super::*;
use crate::interface::Interface;
use crate::local_service::{LocalPacket, LocalService};
use crate::network::Policy;
use crate::route::Route;
use bench::*;

#[test]
fn without_hosts_on_the_link_frames_to_any_station_are_taken_and_neighbours_assumed() {
    let default = Route::via("0.0.0.0/0".parse().unwrap(), "192.0.2.254".parse().unwrap());
    let played = interfaces().into_iter().map(|known| Interface { is_played: true, ..known });
    let played = Network::new(played.collect(), &[default], quiet()).unwrap();
    let elsewhere = udp([2, 0, 0, 0, 0, 0x77], "10.0.0.2", "10.0.0.9", 5);
    let mut strict = Bench::new(network(quiet()), 1);
    assert_eq!(strict.receive(0, 0, &elsewhere, s(0)), []);
    assert_eq!(strict.dropped(DropReason::NotOurs), 1);
    strict.finish();
    let mut bench = Bench::new(played, 1);
    let sent = bench.receive(0, 0, &elsewhere, s(0));
    assert_eq!((sent.len(), &sent[0].1[..6]), (1, &[2, 0, 10, 0, 0, 9][..]));
    // What a capture states about its own neighbours changes nothing in the middle of it.
    assert_eq!(bench.receive(0, 1, &arp_reply("192.0.2.254", "192.0.2.1"), s(0)), []);
    let sent = bench.receive(0, 0, &udp(LAN, "10.0.0.2", "8.8.8.8", 5), s(0));
    assert_eq!((sent[0].0, &sent[0].1[..6]), (DeviceId(1), &[2, 0, 192, 0, 2, 254][..]));
    // Entered ones count.
    bench.lanes[0].0.network().set_neighbour(DeviceId(1), "192.0.2.254".parse().unwrap(), PEER);
    let sent = bench.receive(0, 0, &udp(LAN, "10.0.0.2", "8.8.8.8", 5), s(0));
    assert_eq!(sent[0].1[..6], PEER);
    bench.finish();
}

#[test]
fn what_one_lane_learns_frees_what_waits_on_another() {
    let mut bench = Bench::new(network(quiet()), 2);
    let asked = bench.receive(0, 0, &udp(LAN, "10.0.0.2", "8.8.8.8", 5), s(0));
    assert_eq!((asked.len(), asked[0].0), (1, DeviceId(1)));
    // The other lane's packet waits for the same answer, and asks no second question.
    assert_eq!(bench.receive(1, 0, &udp(LAN, "10.0.0.3", "8.8.8.8", 6), s(0)), []);
    assert_eq!(bench.lanes[1].1.counters().waiting.get(), 1);
    // Only after a while, unless something changes, need it look again.
    assert!(bench.lanes[1].0.next_deadline() > s(0));
    let freed = bench.receive(0, 1, &arp_reply("192.0.2.254", "192.0.2.1"), s(0));
    assert_eq!((freed.len(), &freed[0].1[..12]), (1, &[PEER, WAN].concat()[..]));
    assert_eq!(bench.lanes[1].0.next_deadline(), Time::ZERO);
    let freed = bench.tick(1, s(0));
    assert_eq!((freed.len(), &freed[0].1[..12]), (1, &[PEER, WAN].concat()[..]));
    bench.finish();
}

#[test]
fn the_oldest_of_those_that_wait_goes_first() {
    let policy = Policy { waiting: 4, ..quiet() };
    let mut bench = Bench::new(network(policy), 1);
    for len in 1..=5 {
        bench.receive(0, 0, &udp(LAN, "10.0.0.2", "8.8.8.8", len), s(0));
    }
    assert_eq!(bench.dropped(DropReason::NeighbourUnresolved), 2);
    // The lane's bound is less than that of two neighbours.
    bench.receive(0, 1, &udp(WAN, "8.8.8.8", "10.0.0.7", 1), s(0));
    bench.receive(0, 1, &udp(WAN, "8.8.8.8", "10.0.0.8", 1), s(0));
    assert_eq!(bench.lanes[0].1.counters().waiting.get(), 4);
    assert_eq!(bench.dropped(DropReason::NeighbourUnresolved), 3);
    let freed = bench.receive(0, 1, &arp_reply("192.0.2.254", "192.0.2.1"), s(0));
    // Datagrams of 3, 4 and 5 bytes.
    let lengths: Vec<_> = freed.iter().map(|(_, frame)| frame[39] - 8).collect();
    assert_eq!(lengths, [3, 4, 5]);
    bench.finish();
}

#[test]
fn a_lane_that_is_far_behind_still_gives_up_what_waits() {
    let network = network(quiet());
    network.set_neighbour(DeviceId(0), "10.0.0.2".parse().unwrap(), PEER);
    let mut bench = Bench::new(network, 2);
    // The second lane's request gets no answer.
    bench.receive(1, 0, &udp(LAN, "10.0.0.2", "8.8.8.8", 5), s(0));
    for second in 1..=3 {
        bench.tick(0, s(second));
    }
    // Much happens after that: the table no longer states what it was.
    for number in 0..3_000_u32 {
        let mut request = arp_reply("192.0.2.9", "192.0.2.1");
        request[21] = 1;
        request[27] = number as u8;
        bench.receive(0, 1, &request, s(4));
    }
    assert_eq!(bench.lanes[1].1.counters().waiting.get(), 1);
    let told = bench.tick(1, s(4));
    assert_eq!((told.len(), bench.lanes[1].1.counters().waiting.get()), (1, 0));
    assert_eq!(bench.dropped(DropReason::NeighbourUnresolved), 1);
    bench.finish();
}

#[test]
fn errors_are_few() {
    let policy = Policy { errors_per_second: 10, errors_at_once: 4, ..quiet() };
    let network = network(policy);
    network.set_neighbour(DeviceId(0), "10.0.0.2".parse().unwrap(), PEER);
    let mut bench = Bench::new(network, 1);
    let mut told = 0;
    for millis in 0..2_000 {
        let packet = udp(LAN, "10.0.0.2", "10.0.0.1", 5);
        told += bench.receive(0, 0, &packet, Time::from_millis(millis)).len();
    }
    assert!((20..=24).contains(&told), "{told}");
    assert_eq!(bench.dropped(DropReason::NoListener), 2_000);
    bench.finish();
}

#[test]
fn addresses_are_announced_twice() {
    let mut bench = Bench::new(network(Policy::default()), 2);
    let announced = bench.tick(0, s(5));
    // 10.0.0.1, fd00::1 and the link-local address; 192.0.2.1, two proxied ones, and link-local.
    let on = |device| announced.iter().filter(|(d, _)| *d == DeviceId(device)).count();
    assert_eq!((on(0), on(1)), (3, 4));
    let arp = announced.iter().filter(|(_, frame)| frame[12..14] == [8, 6]);
    for (_, frame) in arp.clone() {
        assert_eq!((&frame[..6], &frame[28..32]), (&[0xff; 6][..], &frame[38..42]));
    }
    assert_eq!(arp.count(), 4);
    // Not once more by another lane, but once more later.
    assert_eq!(bench.tick(1, s(5)), []);
    assert_eq!(bench.tick(1, s(7)), announced);
    assert_eq!((bench.tick(0, s(99)), bench.tick(1, s(99))), (Vec::new(), Vec::new()));
    bench.finish();
}

#[test]
fn source_routes_are_dropped() {
    let network = network(quiet());
    network.set_neighbour(DeviceId(1), "192.0.2.254".parse().unwrap(), PEER);
    let mut bench = Bench::new(network, 1);
    let with = |options: &[u8]| {
        let (source, destination) = ("10.0.0.2".parse().unwrap(), "8.8.8.8".parse().unwrap());
        let udp = Transport::Udp { ports: (1, 2) };
        let builder = FrameBuilder::new(source, destination, udp, Payload::Pattern(30));
        FrameBuilder { options, ..builder }
            .with_ethernet(Ethernet { source: PEER, destination: LAN, vlan: None })
            .to_vec()
    };
    for kind in [131, 137] {
        assert_eq!(bench.receive(0, 0, &with(&[1, kind, 3, 4]), s(0)), []);
    }
    assert_eq!(bench.dropped(DropReason::Martian), 2);
    // A router alert, and what only looks like a source route.
    for options in [[148, 4, 0, 0], [0, 131, 3, 4], [7, 0, 131, 3]] {
        assert_eq!(bench.receive(0, 0, &with(&options), s(0)).len(), 1, "{options:?}");
    }
    bench.finish();
}

#[test]
fn other_routes_count_from_the_next_poll_on() {
    let network = network(quiet());
    network.set_neighbour(DeviceId(1), "192.0.2.254".parse().unwrap(), PEER);
    network.set_neighbour(DeviceId(0), "10.0.0.9".parse().unwrap(), LAN);
    let mut bench = Bench::new(network, 1);
    let packet = udp(LAN, "10.0.0.2", "8.8.8.8", 5);
    assert_eq!(bench.receive(0, 0, &packet, s(0))[0].0, DeviceId(1));
    let other = Route::via("0.0.0.0/0".parse().unwrap(), "10.0.0.9".parse().unwrap());
    bench.lanes[0].0.network.clone().set_routes(&[other]).unwrap();
    assert_eq!(bench.receive(0, 0, &packet, s(0))[0].0, DeviceId(0));
    bench.finish();
}

/// A network whose neighbours on both links are known, with a host of IPv6 on each.
fn known_neighbours() -> Network {
    let mut interfaces = interfaces();
    interfaces[1].addresses.push("fd01::1/64".parse().unwrap());
    let network = Network::new(interfaces, &[], quiet()).unwrap();
    for (device, address) in [(0, "10.0.0.2"), (0, "fd00::2"), (1, "192.0.2.2"), (1, "fd01::2")] {
        network.set_neighbour(DeviceId(device), address.parse().unwrap(), PEER);
    }
    network
}

#[test]
fn another_mtu_of_a_link_counts_from_the_next_poll_on() {
    let mut bench = Bench::new(known_neighbours(), 1);
    let network = bench.lanes[0].0.network.clone();
    let v4 = udp(LAN, "10.0.0.2", "192.0.2.2", 1_400);
    let v6 = udp(LAN, "fd00::2", "fd01::2", 1_400);
    let mut fragmented = v4.clone();
    fragmented[20] &= !0x40;
    let sum = rheostat_packet::checksum::of(&[&fragmented[14..24], &fragmented[26..34]].concat());
    fragmented[24..26].copy_from_slice(&sum.to_be_bytes());
    for packet in [&v4, &v6, &fragmented] {
        let passed = bench.receive(0, 0, packet, s(0));
        assert_eq!((passed.len(), passed[0].0), (1, DeviceId(1)));
    }
    network.set_mtu(DeviceId(1), 1_300);
    assert_eq!((network.mtu(DeviceId(1)), network.mtu(DeviceId(0))), (Some(1_300), Some(1_500)));
    // The senders get the new MTU, by ICMP type 3 code 4 and ICMPv6 type 2.
    let told = bench.receive(0, 0, &v4, s(0));
    assert_eq!((told.len(), told[0].0), (1, DeviceId(0)));
    assert_eq!(
        (&told[0].1[34..36], &told[0].1[40..42]),
        (&[3, 4][..], &1_300_u16.to_be_bytes()[..])
    );
    let told = bench.receive(0, 0, &v6, s(0));
    assert_eq!((told.len(), told[0].0), (1, DeviceId(0)));
    assert_eq!(
        (&told[0].1[54..56], &told[0].1[58..62]),
        (&[2, 0][..], &1_300_u32.to_be_bytes()[..])
    );
    assert_eq!(bench.dropped(DropReason::TooBig), 2);
    // What may be cut is.
    let pieces = bench.receive(0, 0, &fragmented, s(0));
    assert_eq!(pieces.len(), 2);
    assert!(pieces.iter().all(|(device, frame)| *device == DeviceId(1) && frame.len() <= 1_314));
    // A wider link carries it whole again.
    network.set_mtu(DeviceId(1), 1_500);
    for packet in [&v4, &v6, &fragmented] {
        let passed = bench.receive(0, 0, packet, s(0));
        assert_eq!((passed.len(), passed[0].0), (1, DeviceId(1)));
    }
    bench.finish();
}

#[test]
fn a_link_too_narrow_for_ipv6_carries_none_until_it_is_wide_again() {
    let mut bench = Bench::new(known_neighbours(), 1);
    let network = bench.lanes[0].0.network.clone();
    let (out, back) = (udp(LAN, "fd00::2", "fd01::2", 5), udp(WAN, "fd01::2", "fd00::2", 5));
    let v4 = udp(LAN, "10.0.0.2", "192.0.2.2", 5);
    network.set_mtu(DeviceId(1), 1_279);
    // No route leads there: the sender gets an error (ICMPv6 type 1), and nothing is taken from there.
    let told = bench.receive(0, 0, &out, s(0));
    assert_eq!((told.len(), told[0].0, told[0].1[54]), (1, DeviceId(0), 1));
    assert_eq!(bench.receive(0, 1, &back, s(0)), []);
    assert_eq!(bench.dropped(DropReason::Ipv6Off), 2);
    assert_eq!(bench.receive(0, 0, &v4, s(0)).len(), 1, "IPv4 goes on");
    // A neighbour that is not known is not asked for.
    let unknown = udp(LAN, "fd00::2", "fd01::3", 5);
    let told = bench.receive(0, 0, &unknown, s(0));
    assert_eq!((told.len(), told[0].0, told[0].1[54]), (1, DeviceId(0), 1));
    network.set_mtu(DeviceId(1), 1_280);
    assert_eq!(bench.receive(0, 0, &out, s(0))[0].0, DeviceId(1));
    assert_eq!(bench.receive(0, 1, &back, s(0))[0].0, DeviceId(0));
    // No link of IPv4 is narrower than 68 bytes.
    network.set_mtu(DeviceId(1), 10);
    assert_eq!(network.mtu(DeviceId(1)), Some(68));
    bench.finish();
}

/// Answers datagrams with themselves, and sends one of its own each second.
#[derive(Default)]
struct Parrot {
    next: Mutex<Time>,
}

fn parroted(packet: &LocalPacket<'_>) -> Vec<u8> {
    let payload = Payload::Bytes(&packet.payload[8..]);
    let udp = Transport::Udp { ports: (53, 1_000) };
    FrameBuilder::new(packet.destination, packet.source, udp, payload).to_vec()
}

impl LocalService for Parrot {
    fn receive(&self, packet: &LocalPacket<'_>, _: Time, outbox: &mut Outbox) -> bool {
        let is_ours = packet.protocol == 17 && packet.payload[2..4] == [0, 53];
        if is_ours {
            outbox.send(parroted(packet));
        }
        is_ours
    }

    fn tick(&self, now: Time, outbox: &mut Outbox) {
        *self.next.lock().unwrap() = now + Duration::from_secs(1);
        let (own, peer) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let udp = Transport::Udp { ports: (53, 1_000) };
        outbox.send(FrameBuilder::new(own, peer, udp, Payload::Pattern(3)).to_vec());
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(*self.next.lock().unwrap())
    }
}

#[test]
fn local_services_get_what_is_for_them_and_send() {
    let network = network(quiet()).with_local_service(Arc::new(Parrot::default()));
    network.set_neighbour(DeviceId(0), "10.0.0.2".parse().unwrap(), PEER);
    let mut bench = Bench::new(network, 2);
    // The lane that comes first calls them, and no other lane does so again.
    assert_eq!(bench.tick(0, s(1)).len(), 1);
    assert_eq!(bench.tick(1, s(1)).len(), 0);
    assert_eq!(bench.tick(1, s(2)).len(), 1);
    let answer = bench.receive(1, 0, &udp(LAN, "10.0.0.2", "10.0.0.1", 20), s(2));
    let (device, frame) = &answer[0];
    assert_eq!((*device, &frame[26..34]), (DeviceId(0), &[10, 0, 0, 1, 10, 0, 0, 2][..]));
    // By the address of another interface, too.
    assert_eq!(bench.receive(0, 0, &udp(LAN, "10.0.0.2", "192.0.2.1", 20), s(2)).len(), 1);
    // What is wrong in its checksum, they do not see; what is not theirs is refused.
    let mut wrong = udp(LAN, "10.0.0.2", "10.0.0.1", 20);
    wrong[50] ^= 1;
    assert_eq!(bench.receive(0, 0, &wrong, s(2)).len(), 0);
    assert_eq!(bench.dropped(DropReason::Malformed), 1);
    let syn = Transport::Tcp(TcpHeader { ports: (1, 2), flags: 2, ..TcpHeader::default() });
    let reset = bench.receive(0, 0, &self::frame(LAN, "10.0.0.2", "10.0.0.1", syn, 0), s(2));
    assert_eq!(reset[0].1[47], 0x14, "a reset with an acknowledgement");
    bench.finish();
}

#[test]
fn a_frame_in_several_buffers_is_passed_on_and_cut_up() {
    let mut interfaces = interfaces();
    interfaces[0].mtu = 9_000;
    let default = Route::via("0.0.0.0/0".parse().unwrap(), "192.0.2.254".parse().unwrap());
    let network = Network::new(interfaces, &[default], quiet()).unwrap();
    network.set_neighbour(DeviceId(1), "192.0.2.254".parse().unwrap(), PEER);
    network.set_neighbour(DeviceId(0), "10.0.0.2".parse().unwrap(), PEER);
    let mut bench = Bench::new(network, 1);
    let jumbo = udp(WAN, "8.8.8.8", "10.0.0.2", 8_000);
    let passed = bench.receive(0, 1, &jumbo, s(0));
    assert_eq!(passed[0].1.len(), jumbo.len());
    assert_eq!(passed[0].1[34..], jumbo[34..]);
    let (source, destination) = ("10.0.0.2".parse().unwrap(), "8.8.8.8".parse().unwrap());
    let whole = FrameBuilder::new(
        source,
        destination,
        Transport::Udp { ports: (1, 2) },
        Payload::Pattern(8_000),
    );
    let whole = FrameBuilder { dont_fragment: false, ..whole }.with_ethernet(Ethernet {
        source: PEER,
        destination: LAN,
        vlan: None,
    });
    let pieces = bench.receive(0, 0, &whole.to_vec(), s(0));
    assert_eq!(pieces.len(), 6);
    assert!(pieces.iter().all(|(_, frame)| frame.len() <= 1_514));
    // An echo request of that size, too.
    let echo = Transport::Icmp { kind: 8, code: 0, rest: 0x0007_0001 };
    let reply = bench.receive(0, 0, &frame(LAN, "10.0.0.2", "10.0.0.1", echo, 8_000), s(0));
    assert_eq!((reply.len(), reply[0].1[34]), (1, 0));
    bench.finish();
}

/// Frames that are nearly right, and some that are not right at all.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let address = prop::sample::select(vec![
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.255",
        "8.8.8.8",
        "192.0.2.1",
        "192.0.2.100",
        "224.0.0.1",
        "127.0.0.1",
        "0.0.0.0",
    ]);
    let address_v6 = prop::sample::select(vec![
        "fd00::1",
        "fd00::2",
        "fe80::2",
        "ff02::1",
        "ff02::1:ff00:1",
        "::",
        "2001:db8::1",
    ]);
    let pair = prop_oneof![(address.clone(), address), (address_v6.clone(), address_v6),];
    let kind = (0..5_u8, any::<u8>(), any::<u32>()).prop_map(|(kind, byte, word)| match kind {
        0 => Transport::Udp { ports: (word as u16, 53) },
        1 => Transport::Tcp(TcpHeader { ports: (1, 2), flags: byte, ..TcpHeader::default() }),
        2 => Transport::Icmp { kind: byte, code: 0, rest: word },
        3 => Transport::Icmp { kind: 135 + (byte & 1), code: 0, rest: word },
        _ => Transport::Protocol(byte),
    });
    let to = prop::sample::select(vec![LAN, WAN, [0xff; 6], [0x33, 0x33, 0, 0, 0, 1], PEER]);
    let changes = prop::collection::vec((0_usize..90, any::<u8>()), 0..4);
    (pair, kind, to, 0_usize..1_600, 0_u8..4, changes, any::<bool>()).prop_map(
        |((source, destination), transport, to, len, ttl, changes, arp)| {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let builder = FrameBuilder::new(source, destination, transport, Payload::Pattern(len));
            let mut frame = FrameBuilder { ttl, dont_fragment: len % 2 == 0, ..builder }
                .with_ethernet(Ethernet { source: PEER, destination: to, vlan: None })
                .to_vec();
            if arp && len % 4 == 0 {
                frame[12..20].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4]);
            }
            for (at, byte) in changes {
                let at = at % frame.len();
                frame[at] = byte;
            }
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 600 }))]

    /// Whatever arrives, on whichever lane, nothing panics, and every packet is accounted for.
    #[test]
    fn nothing_is_too_odd_and_nothing_is_lost(
        frames in prop::collection::vec((any_frame(), 0_usize..2, 0_u8..3, 0_u64..1_500), 1..30),
    ) {
        let mut bench = Bench::new(network(Policy::default()), 2);
        let mut now = 0;
        for (frame, lane, device, millis) in frames {
            now += millis;
            bench.receive(lane, device, &frame, Time::from_millis(now));
            bench.tick(1 - lane, Time::from_millis(now));
        }
        bench.finish();
    }
}
