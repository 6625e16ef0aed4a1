//! The fast path around a chain beside the general code: what becomes of any packets is the same.

use rheostat_packet::BURST;
use rheostat_packet::wire::MacAddress;

use super::*;

/// A chain that changes destinations, as a NAT does: of packets for a proxied address to a host of the LAN, of others to where they
/// leave on another device, or on the link.
fn translate(packet: &mut Mbuf) {
    let of = |address: &str| address.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let data = packet.data_mut();
    if data.len() >= 34 && data[30..34] == [192, 0, 2, 100] {
        data[30..34].copy_from_slice(&[10, 0, 0, 2]);
    }
    if data.len() >= 54 {
        for (from, to) in [("2001:db8::50", "fd00::2"), ("2001:db8::51", "fe80::7")] {
            if data[38..54] == of(from) {
                data[38..54].copy_from_slice(&of(to));
            }
        }
    }
}

impl Bench {
    /// Lets a burst pass a chain, of which the packets that are `usual` may take the fast path. Returns what leaves, and how many
    /// packets took it on both sides of the chain.
    fn pass_burst(
        &mut self,
        frames: &[(u8, Vec<u8>)],
        usual: &dyn Fn(usize) -> bool,
        now: Time,
    ) -> (Vec<(DeviceId, Vec<u8>)>, usize) {
        let (mut packets, mut infos) = self.arrive(frames, usual, now);
        let (stack, out) = &mut self.lanes[0];
        let mut admissions = Vec::new();
        stack.admit_burst(&mut packets, &mut infos, &mut admissions, out);
        for (info, admission) in infos.iter().zip(&admissions) {
            assert!(!info.is_usual() || matches!(admission, Admission::Through(_)));
        }
        packets.iter_mut().for_each(translate);
        let mut egress = [DeviceId(0); BURST];
        let (mut place, mut fast) = (0, 0);
        while place < frames.len() {
            let end = place + infos[place..].iter().take_while(|info| info.is_usual()).count();
            let steady = &mut packets[..end - place];
            let ready = stack.depart_burst(steady, &admissions[place..], &mut egress);
            (place, fast) = (place + ready.len(), fast + ready.len());
            for (device, packet) in ready.iter().zip(packets.drain(..ready.len())) {
                out.send(*device, packet);
            }
            if ready.len() < BURST && place < frames.len() {
                let packet = packets.remove(0);
                match admissions[place] {
                    Admission::Through(path) | Admission::Back(path) => {
                        stack.send(packet, path, out);
                    }
                    Admission::Consume | Admission::Transport | Admission::TransportError => {
                        out.consume(packet)
                    }
                    Admission::Drop(reason) => out.drop(packet, reason),
                }
                place += 1;
            }
        }
        (self.sent(0), fast)
    }
}

fn compare(bursts: &[Vec<(u8, Vec<u8>)>], network: fn() -> Network) -> usize {
    compare_ways(|bench, frames, usual, now| bench.pass_burst(frames, usual, now), bursts, network)
}

#[test]
fn plain_packets_take_the_fast_path_around_a_chain() {
    let plain = [
        (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5)),
        (1, udp(WAN, "8.8.8.8", "10.0.0.2", 1_472)),
        (1, udp(WAN, "8.8.8.8", "192.0.2.100", 1_472)),
        (1, udp(WAN, "2001:db8:9::1", "fd00::2", 9)),
        (0, udp(LAN, "fd00::2", "2001:db8::7", 1_452)),
        (0, udp(LAN, "fd00::2", "2001:db8::50", 9)),
    ];
    assert_eq!(compare(&[plain.to_vec()], known), 6);
    assert_eq!(compare(&[plain.iter().cycle().take(100).cloned().collect()], known), 100);
}

#[test]
fn other_packets_are_dealt_with_in_their_turn() {
    let with = |change: fn(&mut Vec<u8>)| {
        let mut frame = udp(LAN, "10.0.0.2", "8.8.8.8", 5);
        change(&mut frame);
        (0, frame)
    };
    for other in [
        with(|frame| frame[24] ^= 1),
        with(|frame| frame[0] ^= 4),
        with(|frame| frame.truncate(30)),
        with(|frame| (frame[22] = 1, summed(frame)).1),
        with(|frame| (frame[26] = 127, summed(frame)).1),
        with(|frame| (frame[30] = 224, summed(frame)).1),
        with(|frame| (frame[26..30].copy_from_slice(&[192, 0, 2, 1]), summed(frame)).1),
        with(|frame| (frame[30..34].copy_from_slice(&[192, 0, 2, 1]), summed(frame)).1),
        (0, udp(LAN, "10.0.0.2", "10.0.0.77", 5)),
        (0, udp(LAN, "10.0.0.2", "8.8.8.8", 1_473)),
        (0, udp(LAN, "fd00::2", "2001:db8::7", 1_453)),
        (0, udp(LAN, "fd00::2", "2001:db8::51", 5)),
        (0, udp(LAN, "fd00::1", "2001:db8::7", 5)),
        (0, udp(LAN, "fe80::1", "2001:db8::7", 5)),
        (0, udp(LAN, "fd00::2", "ff0e::7", 5)),
        (0, udp(LAN, "fd00::2", "fd00::1", 5)),
        (1, arp_reply("192.0.2.254", "192.0.2.1")),
    ] {
        let plain = || (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5));
        let burst = vec![plain(), other.clone(), plain()];
        assert_eq!(compare(&[burst], known), 2, "{other:?}");
    }
}

/// Whatever the routes say: link-local addresses are on the link.
#[test]
fn a_packet_to_a_link_local_address_does_not_take_the_default_route() {
    let with_default = || {
        let six = Route::via("::/0".parse().unwrap(), "fd00::9".parse().unwrap());
        let network = Network::new(interfaces(), &[six], quiet()).unwrap();
        network.set_neighbour(DeviceId(0), "fd00::9".parse().unwrap(), PEER);
        network
    };
    let [to_default, on_link] = ["2001:db8::7", "2001:db8::51"]
        .map(|destination| vec![(0, udp(LAN, "fd00::2", destination, 5))]);
    assert_eq!(compare(&[to_default], with_default), 1);
    assert_eq!(compare(&[on_link], with_default), 0);
}

/// Packets that are the machine's own if the chain has no use for them are told apart from those in transit.
#[test]
fn what_is_known_of_the_ways_of_packets_is_the_same() {
    let shared = || {
        let mut interfaces = interfaces();
        interfaces[1].proxied = ["192.0.2.1/32", "192.0.2.100/31"]
            .iter()
            .map(|prefix| prefix.parse().unwrap())
            .collect();
        let route = Route::via("0.0.0.0/0".parse().unwrap(), "192.0.2.254".parse().unwrap());
        Network::new(interfaces, &[route], quiet()).unwrap()
    };
    let frames = [
        (1, udp(WAN, "8.8.8.8", "192.0.2.1", 5)),
        (1, udp(WAN, "8.8.8.8", "192.0.2.101", 5)),
        (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5)),
        (0, udp(LAN, "10.0.0.2", "192.0.2.200", 5)),
        (1, udp(WAN, "2001:db8::1", "fd00::2", 5)),
    ];
    let [plain, general] = [true, false].map(|is_usual| {
        let mut bench = Bench::new(shared(), 1);
        let (mut packets, mut infos) = bench.arrive(&frames, &|_| is_usual, s(0));
        let (stack, out) = &mut bench.lanes[0];
        let mut admissions = Vec::new();
        stack.admit_burst(&mut packets, &mut infos, &mut admissions, out);
        packets.into_iter().for_each(|packet| out.consume(packet));
        bench.finish();
        admissions
    });
    assert_eq!(plain, general);
    let home: Vec<_> = plain
        .iter()
        .map(|admission| matches!(admission, Admission::Through(path) if path.leads_home()))
        .collect();
    assert_eq!(home, [true, false, false, false, false]);
}

/// The link address is that of the next hop of where a packet goes when it leaves.
#[test]
fn a_packet_leaves_for_the_next_hop_of_its_destination_behind_the_chain() {
    for is_usual in [true, false] {
        let mut bench = Bench::new(known(), 1);
        let to = [
            (1, udp(WAN, "8.8.8.8", "192.0.2.100", 5)),
            (0, udp(LAN, "fd00::9", "2001:db8::50", 5)),
        ];
        let (sent, fast) = bench.pass_burst(&to, &|_| is_usual, s(0));
        assert_eq!(fast, if is_usual { 2 } else { 0 });
        let expected: [MacAddress; 2] = [NEIGHBOURS[1].2, NEIGHBOURS[3].2];
        assert_eq!(sent.len(), 2);
        for ((device, frame), mac) in sent.iter().zip(expected) {
            assert_eq!((device.0, &frame[..6]), (0, &mac[..]));
            let limit = if frame[12] == 8 { frame[22] } else { frame[21] };
            assert_eq!(limit, 63, "one hop further");
        }
        bench.finish();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn whatever_arrives_becomes_the_same_around_a_chain(
        bursts in prop::collection::vec(
            prop::collection::vec((0_u8..3, any_frame()), 1..40), 1..4,
        ),
    ) {
        compare(&bursts, known);
    }
}
