//! A transport beside the stack.

use rheostat_packet::Mbuf;

use super::*;

/// What becomes of a frame that arrives on the first device of a stack that a transport is beside.
fn admit(bench: &mut Bench, frame: &[u8]) -> (Admission, Vec<u8>) {
    let (stack, out) = &mut bench.lanes[0];
    stack.has_tcp = true;
    let mut packet: Mbuf = out.pool().alloc_from(frame).unwrap();
    packet.set_device(DeviceId(0));
    out.counters().received.increment();
    let admission = stack.admit(&mut packet, out);
    let bytes = packet.to_vec();
    out.consume(packet);
    (admission, bytes)
}

fn tcp(from: &str, to: &str, vlan: Option<u16>) -> Vec<u8> {
    let header = TcpHeader {
        ports: (5, 80),
        seq: 1,
        ack: 2,
        flags: 16,
        window: 100,
        urgent: 0,
        options: &[],
    };
    let link = Ethernet { source: PEER, destination: LAN, vlan };
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    FrameBuilder {
        ttl: 1,
        ..FrameBuilder::new(from, to, Transport::Tcp(header), Payload::Pattern(9))
    }
    .with_ethernet(link)
    .to_vec()
}

#[test]
fn segments_for_this_machine_reach_the_transport_as_they_arrived() {
    let mut bench = Bench::new(network(quiet()), 1);
    for (from, to) in [("10.0.0.2", "10.0.0.1"), ("fd00::2", "fd00::1")] {
        let frame = tcp(from, to, None);
        assert_eq!(admit(&mut bench, &frame), (Admission::Transport, frame), "{to}");
    }
    // Others go on or are refused as without a transport.
    let other = tcp("10.0.0.2", "10.0.0.1", Some(9));
    assert_eq!(admit(&mut bench, &other).0, Admission::Drop(DropReason::NotOurs));
    let mine = tcp("10.0.0.1", "10.0.0.1", None);
    assert_eq!(admit(&mut bench, &mine).0, Admission::Drop(DropReason::Martian));
    let mut broken = tcp("10.0.0.2", "10.0.0.1", None);
    broken[24] ^= 1;
    assert_eq!(admit(&mut bench, &broken).0, Admission::Drop(DropReason::Malformed));
    let mut fragment = tcp("10.0.0.2", "10.0.0.1", None);
    // More fragments, though its length is no multiple of eight; the checksum is made to fit.
    fragment[20] ^= 0x60;
    let sum =
        rheostat_packet::checksum::of(&[&fragment[14..24], &[0, 0], &fragment[26..34]].concat());
    fragment[24..26].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(admit(&mut bench, &fragment).0, Admission::Drop(DropReason::FragmentInvalid));
    let datagram = udp(LAN, "10.0.0.2", "10.0.0.1", 5);
    assert_eq!(admit(&mut bench, &datagram).0, Admission::Drop(DropReason::NoListener));
    bench.sent(0);
    bench.finish();
}

#[test]
fn a_path_leads_where_the_routes_do_and_changes_are_told() {
    let mut bench = Bench::new(network(quiet()), 1);
    let (stack, out) = &mut bench.lanes[0];
    let before = stack.changes();
    let path = stack.path_to("8.8.8.8".parse().unwrap(), DeviceId(0));
    let near = stack.path_to("10.0.0.2".parse().unwrap(), DeviceId(0));
    assert_ne!(path.hop, near.hop);
    assert_eq!(stack.routes.hop(near.hop), Hop::OnLink(DeviceId(0)));
    assert_eq!(path, stack.path_to("8.8.8.8".parse().unwrap(), DeviceId(0)));
    stack.network().set_mtu(DeviceId(0), 1_400);
    stack.refresh(out);
    assert_ne!(stack.changes(), before);
    assert_eq!(stack.longest_packet(DeviceId(0), "10.0.0.2".parse().unwrap()), 1_400);
    bench.finish();
}
