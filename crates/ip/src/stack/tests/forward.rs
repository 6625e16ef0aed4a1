//! The fast path of a router beside the general code: what becomes of any packets is the same.

use rheostat_packet::BURST;
use rheostat_packet::wire::MacAddress;

use super::*;

impl Bench {
    /// Lets a burst arrive, of which the packets that are `usual` may take the fast path. Returns what leaves, and how many
    /// packets took it.
    fn receive_burst(
        &mut self,
        frames: &[(u8, Vec<u8>)],
        usual: &dyn Fn(usize) -> bool,
        now: Time,
    ) -> (Vec<(DeviceId, Vec<u8>)>, usize) {
        let (mut packets, infos) = self.arrive(frames, usual, now);
        let (stack, out) = &mut self.lanes[0];
        stack.look_up_ways(&packets);
        let (mut place, mut fast) = (0, 0);
        while !packets.is_empty() {
            let ready = stack.forward(place, &mut packets, &infos[place..]).to_vec();
            (place, fast) = (place + ready.len(), fast + ready.len());
            for (device, packet) in ready.iter().zip(packets.drain(..ready.len())) {
                out.send(*device, packet);
            }
            if ready.len() < BURST && !packets.is_empty() {
                let mut packet = packets.remove(0);
                place += 1;
                match stack.admit(&mut packet, out) {
                    Admission::Through(path) | Admission::Back(path) => {
                        stack.send(packet, path, out);
                    }
                    Admission::Consume | Admission::Transport | Admission::TransportError => {
                        out.consume(packet)
                    }
                    Admission::Drop(reason) => out.drop(packet, reason),
                }
            }
        }
        (self.sent(0), fast)
    }
}

fn compare(bursts: &[Vec<(u8, Vec<u8>)>], network: fn() -> Network) -> usize {
    compare_ways(
        |bench, frames, usual, now| bench.receive_burst(frames, usual, now),
        bursts,
        network,
    )
}

#[test]
fn plain_packets_take_the_fast_path_and_others_do_not() {
    let plain = [
        (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5)),
        (1, udp(WAN, "8.8.8.8", "10.0.0.2", 1_472)),
        (1, udp(WAN, "2001:db8:9::1", "fd00::2", 9)),
        (0, udp(LAN, "fd00::2", "2001:db8::7", 1_452)),
    ];
    assert_eq!(compare(&[plain.to_vec()], known), 4);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut frame = udp(LAN, "10.0.0.2", "8.8.8.8", 5);
        change(&mut frame);
        vec![(0, frame)]
    };
    for other in [
        with(|frame| frame[24] ^= 1),
        with(|frame| frame[0] ^= 4),
        with(|frame| frame.truncate(30)),
        with(|frame| (frame[17] = 60, summed(frame)).1),
        with(|frame| (frame[17] = 19, summed(frame)).1),
        with(|frame| (frame[22] = 1, summed(frame)).1),
        with(|frame| (frame[22] = 0, summed(frame)).1),
        with(|frame| (frame[26] = 127, summed(frame)).1),
        with(|frame| (frame[30] = 224, summed(frame)).1),
        with(|frame| (frame[26..30].copy_from_slice(&[192, 0, 2, 1]), summed(frame)).1),
        with(|frame| (frame[30..34].copy_from_slice(&[192, 0, 2, 1]), summed(frame)).1),
        vec![(0, udp(LAN, "10.0.0.2", "10.0.0.77", 5))],
        vec![(0, udp(LAN, "10.0.0.2", "8.8.8.8", 1_473))],
        vec![(0, udp(LAN, "fd00::2", "2001:db8::7", 1_453))],
        vec![(0, udp(LAN, "fd00::1", "2001:db8::7", 5))],
        vec![(0, udp(LAN, "fe80::1", "2001:db8::7", 5))],
        vec![(0, udp(LAN, "fd00::2", "ff0e::7", 5))],
        vec![(0, udp(LAN, "fd00::2", "fd00::1", 5))],
        vec![(1, arp_reply("192.0.2.254", "192.0.2.1"))],
    ] {
        assert_eq!(compare(std::slice::from_ref(&other), known), 0, "{other:?}");
    }
}

#[test]
fn a_packet_is_for_the_link_address_of_its_own_next_hop() {
    let to = [
        (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5)),
        (1, udp(WAN, "8.8.8.8", "10.0.0.2", 5)),
        (0, udp(LAN, "fd00::2", "2001:db8::7", 5)),
        (1, udp(WAN, "2001:db8:9::1", "fd00::2", 5)),
    ];
    for is_usual in [true, false] {
        let mut bench = Bench::new(known(), 1);
        let (sent, fast) = bench.receive_burst(&to, &|_| is_usual, s(0));
        assert_eq!(fast, if is_usual { 4 } else { 0 });
        let mut sent: Vec<_> =
            sent.iter().map(|(device, frame)| (device.0, frame[..12].to_vec())).collect();
        sent.sort_unstable();
        let link = |device, mac: MacAddress| [mac, if device == 0 { LAN } else { WAN }].concat();
        let mut expected = NEIGHBOURS.map(|(device, _, mac)| (device, link(device, mac)));
        expected.sort_unstable();
        assert_eq!(sent, expected);
        bench.finish();
    }
}

/// With every checksum that a header can have.
#[test]
fn the_checksum_of_a_header_stays_right_whatever_it_was() {
    let frame = |id: u16| {
        let mut frame = udp(LAN, "10.0.0.2", "8.8.8.8", 5);
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        frame[24..26].fill(0);
        let sum = rheostat_packet::checksum::of(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        (0, frame)
    };
    let step = if cfg!(miri) { 4_099 } else { 1 };
    let ids: Vec<u16> = (0..=u16::MAX).step_by(step).collect();
    let bursts: Vec<_> =
        ids.chunks(64).map(|ids| ids.iter().map(|id| frame(*id)).collect()).collect();
    assert_eq!(compare(&bursts, known), ids.len());
}

#[test]
fn what_a_packet_reveals_of_neighbours_counts_for_those_behind_it() {
    let unknown = || network(quiet());
    let udp = || (0, udp(LAN, "10.0.0.2", "8.8.8.8", 5));
    let burst = vec![udp(), (1, arp_reply("192.0.2.254", "192.0.2.1")), udp(), udp()];
    // The first waits for the answer behind it.
    assert_eq!(compare(&[burst, vec![udp(); 40]], unknown), 2 + 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn whatever_arrives_becomes_the_same_on_the_fast_path(
        bursts in prop::collection::vec(
            prop::collection::vec((0_u8..3, any_frame()), 1..40), 1..4,
        ),
    ) {
        compare(&bursts, known);
    }
}
