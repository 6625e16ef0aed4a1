//! Packet sockets on real interfaces.
//!
//! Timed: sleep, processes, devices.

use std::collections::HashMap;
use std::sync::Arc;

use rheostat_capture::{Filter, Match};

use crate::support::live::{
    self, Open, UNDER_WAY, await_condition, forward, output, rounds, transfer,
};
use crate::support::steerings::{DEVICES, expected, steerings};
use crate::support::{flow, hostile, number, udp};
use rheostat_base::{DeviceId, DropReason, QueueId, Time};
use rheostat_io::{Device, InterfaceError, PacketConfig, PacketDevice};
use rheostat_packet::{Burst, Mbuf};
use rheostat_steer::{HashKey, HashOptions, Orientation, Steering};
use rheostat_testkit::namespace::in_own_network;
use rheostat_testkit::veth::{Host, VethPair, ip};

fn steering() -> Arc<Steering> {
    let key: [u8; 40] = std::array::from_fn(|i| (i as u8).wrapping_mul(89).wrapping_add(7));
    let orientations = vec![Orientation::Inside, Orientation::Outside];
    Arc::new(Steering::new(&HashKey::new(key), 128, 128, orientations).unwrap())
}

fn config(interface: &str, queues: u16) -> PacketConfig {
    PacketConfig::new("test", interface, queues, steering())
}

fn open(config: PacketConfig) -> Open<PacketDevice> {
    Open::new(|pool| PacketDevice::open(config, pool).unwrap())
}

#[test]
fn packets_arrive_once_in_order_on_the_lane_of_their_hash() {
    if !in_own_network(module_path!(), "packets_arrive_once_in_order_on_the_lane_of_their_hash") {
        return;
    }
    for lanes in [1, 2, 4] {
        let pair = VethPair::new("o");
        let mut near = open(config(&pair.a, 1));
        let mut far = open(config(&pair.b, lanes));
        let table = far.device.table().unwrap();
        let steering = steering();
        let mut last: HashMap<u16, u32> = HashMap::new();
        let mut lanes_seen = vec![0; lanes.into()];
        let (mut sent, mut got) = (0, 0);
        let mut check = |lane: usize, packet: &Mbuf| {
            let bytes = packet.to_vec();
            let (hash, _) = expected(&steering, HashOptions::AddressesOnly, DeviceId(0), &bytes);
            let bucket = steering.bucket_of_hash(hash);
            assert_eq!(table.read()[bucket], QueueId(lane as u16));
            let before = last.insert(flow(&bytes), number(&bytes));
            assert!(before.is_none_or(|before| before < number(&bytes)), "out of order");
            assert_eq!(packet.timestamp(), Time::from_millis(5));
            lanes_seen[lane] += 1;
        };
        while sent < 20_000 {
            let frames = rounds(200, sent, 32);
            sent += near.send(&frames) as u32;
            let under_way = (sent as usize).saturating_sub(got + UNDER_WAY);
            got += far.poll_for(under_way, &mut check);
        }
        got += far.poll_for(sent as usize - got, &mut check);
        assert_eq!(got, sent as usize);
        assert!(lanes_seen.iter().all(|&count| count > 1_000), "{lanes_seen:?}");
        let counters = far.monitor.counters();
        assert_eq!((counters.arrived, counters.queue_full.iter().sum::<u64>()), (got as u64, 0));
        assert_eq!(counters.arrived_bytes, got as u64 * udp(0, 0).len() as u64);
        assert_eq!(far.device.program_counters().total().packets, got as u64);
        let counters = near.monitor.counters();
        assert_eq!((counters.sent, counters.arrived), (got as u64, 0));

        far.monitor.stop();
        while !far.monitor.is_exhausted() {
            far.poll(|_, _| {});
        }
        near.send(&rounds(9, 0, 32));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(far.poll(|_, _| {}), 0, "nothing arrives any more");
        near.close();
        far.close();
    }
}

#[test]
fn hostile_packets_are_placed_as_in_user_space() {
    if !in_own_network(module_path!(), "hostile_packets_are_placed_as_in_user_space") {
        return;
    }
    let pair = VethPair::new("h");
    let mut near = open(config(&pair.a, 1));
    let (_, steering) = steerings(128).pop().unwrap();
    let steering = Arc::new(steering);
    let device = DEVICES[2];
    let far = PacketConfig { steering: steering.clone(), device, ..config(&pair.b, 4) };
    let mut far = open(far);
    let frames = hostile::frames(1_000);
    let (mut got, last) = (0, udp(1, 1));
    for some in frames.chunks(16) {
        near.send(some);
        // The kernel drops frames whose tags are cut off. What it does not drop is there when the last one is.
        near.send(std::slice::from_ref(&last));
        let mut is_over = false;
        while !is_over {
            let seen = far.poll_for(1, |lane, packet| {
                let bytes = packet.to_vec();
                let (hash, _) = expected(&steering, HashOptions::AddressesOnly, device, &bytes);
                assert_eq!(steering.bucket_of_hash(hash) % 4, lane, "{bytes:02x?}");
                is_over |= bytes == last;
                got += usize::from(frames.contains(&bytes));
            });
            assert!(seen > 0, "the last of them does not come");
        }
    }
    // Some lanes may report later than others.
    while got <= 900 {
        let seen =
            far.poll_for(1, |_, packet| got += usize::from(frames.contains(&packet.to_vec())));
        assert!(seen > 0, "only {got} have come");
    }
    near.close();
    far.close();
}

#[test]
fn rewriting_the_table_under_traffic_loses_nothing() {
    if !in_own_network(module_path!(), "rewriting_the_table_under_traffic_loses_nothing") {
        return;
    }
    let pair = VethPair::new("w");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 4));
    let table = far.device.table().unwrap();
    let (mut sent, mut got, mut seen) = (0_u32, 0, vec![0_u8; 40_000]);
    let mut mark = |_: usize, packet: &Mbuf| seen[number(&packet.to_vec()) as usize] += 1;
    let mut rewrites = 0;
    while sent < 40_000 {
        let entries: Vec<_> = (0..128).map(|i| QueueId(((i + rewrites) % 4) as u16)).collect();
        let fence = table.rewrite(&entries).unwrap();
        rewrites += 1;
        // Every tenth is waited for, the others overtake one another.
        while rewrites % 10 == 0 && !fence.passed() {
            std::thread::yield_now();
        }
        sent += near.send(&rounds(500, sent, 32)) as u32;
        got += far.poll_for((sent as usize).saturating_sub(got + UNDER_WAY), &mut mark);
    }
    got += far.poll_for(sent as usize - got, &mut mark);
    assert!(rewrites >= 1_000, "{rewrites}");
    assert_eq!(got, 40_000);
    assert!(seen.iter().all(|&times| times == 1));
    near.close();
    far.close();
}

#[test]
fn after_the_fence_packets_go_where_the_table_says() {
    if !in_own_network(module_path!(), "after_the_fence_packets_go_where_the_table_says") {
        return;
    }
    let pair = VethPair::new("f");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 2));
    for only in [1, 0, 1] {
        let fence = far.device.table().unwrap().rewrite(&[QueueId(only); 128]).unwrap();
        while !fence.passed() {
            std::thread::yield_now();
        }
        near.send(&rounds(32, 0, 32));
        let got = far.poll_for(32, |lane, _| assert_eq!(lane, usize::from(only)));
        assert_eq!(got, 32);
    }
    near.close();
    far.close();
}

#[test]
fn what_is_left_to_the_kernel_reaches_it_and_what_is_taken_does_not() {
    if !in_own_network(
        module_path!(),
        "what_is_left_to_the_kernel_reaches_it_and_what_is_taken_does_not",
    ) {
        return;
    }
    let host = Host::new("k", &["10.77.1.2/24"], &[], "");
    ip(&format!("addr add 10.77.1.1/24 dev {}", host.link));
    let ping_for = |host: &Host, seconds: u32| {
        let program = format!(
            "import subprocess,sys;sys.exit(subprocess.call(['ping','-c1','-W{seconds}',\
             '10.77.1.1'],stdout=subprocess.DEVNULL))"
        );
        host.python(&program).wait().unwrap().success()
    };
    // Its kernel does not ask for ever where we are.
    let ping = |host: &Host| (0..12).any(|_| ping_for(host, 10));
    assert!(ping(&host), "the kernel answers by itself");
    let icmp = Match { protocol: Some(1), ..Match::default() };
    let arp = Match { ethertype: Some(0x0806), ..Match::default() };
    // Hosts look for routers by themselves.
    let ipv6 = Match { ethertype: Some(0x86dd), ..Match::default() };
    let leaving = |leave: &[&Match]| {
        let leave = leave.iter().map(|&entry| entry.clone()).collect();
        PacketConfig { filter: Filter { leave, ..Filter::default() }, ..config(&host.link, 2) }
    };
    let mut device = open(leaving(&[&icmp, &arp, &ipv6]));
    assert!(ping(&host), "the kernel still gets what is left to it");
    // The answer was there after the request was.
    assert_eq!(device.poll(|_, packet| panic!("{:02x?}", packet.to_vec())), 0);
    assert!(device.device.program_counters().passed > 0);
    device.close();

    let mut device = open(leaving(&[&arp, &ipv6]));
    assert!(!ping_for(&host, 1), "echoes are taken, and the kernel does not see them");
    assert!(device.poll_for(1, |_, _| {}) > 0);
    device.close();

    let mut shared = open(PacketConfig { exclusive: false, ..leaving(&[&arp, &ipv6]) });
    assert!(ping(&host), "both get them");
    assert!(shared.poll_for(1, |_, _| {}) > 0);
    shared.close();
    assert!(ping(&host), "a closed device leaves nothing behind");
}

#[test]
fn offloaded_tcp_arrives_as_packets_of_the_right_size() {
    if !in_own_network(module_path!(), "offloaded_tcp_arrives_as_packets_of_the_right_size") {
        return;
    }
    // Each host takes the other's hardware address for its own neighbour's.
    let mac = "02:00:00:00:77:01";
    let client = Host::new("c", &["10.77.2.1/24", "fd77::1/64"], &["10.77.2.2", "fd77::2"], mac);
    let server = Host::new("s", &["10.77.2.2/24", "fd77::2/64"], &["10.77.2.1", "fd77::1"], mac);
    for host in [&client, &server] {
        host.ip(&format!("link set dev eth address {mac}"));
    }
    let pool = live::pool();
    let open = |host: &Host, device| {
        let config = PacketConfig { device: DeviceId(device), ..config(&host.link, 2) };
        Open::sharing(&pool, PacketDevice::open(config, &pool).unwrap())
    };
    let (mut lan, mut wan) = (open(&client, 0), open(&server, 1));
    for (family, address) in [("AF_INET", "10.77.2.2"), ("AF_INET6", "fd77::2")] {
        let (server, mut client) = transfer(&client, &server, family, address);
        let mut longest = 0;
        while client.try_wait().unwrap().is_none() {
            forward(&mut lan, &mut wan, &mut longest);
        }
        assert_eq!(output(client), output(server));
        assert_eq!(longest, 1_514, "full packets, and none longer");
    }
    let counters = lan.monitor.counters();
    let handed_over = lan.device.program_counters().total();
    assert!(counters.arrived > 28_000, "{counters:?}");
    assert_eq!(counters.malformed + counters.oversize, 0);
    // The program reckons in packets, too.
    assert!(handed_over.packets + 100 > counters.arrived, "{handed_over:?} {counters:?}");
    drop(lan);
    wan.close();
}

#[test]
fn tags_that_the_kernel_took_out_are_back() {
    if !in_own_network(module_path!(), "tags_that_the_kernel_took_out_are_back") {
        return;
    }
    let pair = VethPair::new("v");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 2));
    let mut frame = udp(5, 7);
    frame.splice(12..12, [0x81, 0x00, 0x60, 0x2a]);
    let mut twice = udp(6, 8);
    twice.splice(12..12, [0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x60, 0x2a]);
    let frames = [frame, twice];
    assert_eq!(near.send(&frames), 2);
    let mut got = Vec::new();
    far.poll_for(2, |_, packet| got.push(packet.to_vec()));
    got.sort_by_key(Vec::len);
    assert_eq!(got, frames);
    near.close();
    far.close();
}

#[test]
fn jumbo_frames_pass_and_too_long_ones_are_refused() {
    if !in_own_network(module_path!(), "jumbo_frames_pass_and_too_long_ones_are_refused") {
        return;
    }
    let pair = VethPair::new("j");
    for end in [&pair.a, &pair.b] {
        ip(&format!("link set dev {end} mtu 9000"));
    }
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 1));
    let long = |len: usize| {
        let mut frame = udp(1, 1);
        frame.resize(len, 0xaa);
        frame
    };
    let frames = [long(9_014), long(9_100), long(3_000)];
    assert_eq!(near.send(&frames), 2);
    let mut got = Vec::new();
    far.poll_for(2, |_, packet| got.push(packet.to_vec()));
    assert_eq!(got, [long(9_014), long(3_000)]);
    let warnings = near.monitor.warnings();
    assert!(warnings[0].contains("does not carry 1 packets"), "{warnings:?}");
    near.close();
    far.close();
}

#[test]
fn what_cannot_be_sent_is_left_with_its_reason_and_what_is_behind_it_passes() {
    if !in_own_network(
        module_path!(),
        "what_cannot_be_sent_is_left_with_its_reason_and_what_is_behind_it_passes",
    ) {
        return;
    }
    let pair = VethPair::new("q");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 1));
    let frame = |len: usize| {
        let mut frame = udp(1, 1);
        frame.resize(len, 0xaa);
        frame
    };
    let offer = |near: &mut Open<PacketDevice>, lengths: &[usize]| {
        let frames = lengths.iter().map(|len| near.cache.alloc_from(&frame(*len)).unwrap());
        let mut burst: Burst = frames.collect();
        let queue = &mut near.queues[0].tx;
        let sent = queue.send(&mut burst, &mut near.cache, Time::ZERO);
        let left: Vec<_> = burst.iter().map(Mbuf::len).collect();
        let reasons = (0..).zip(&burst).map(|(place, packet)| queue.why_left(place, packet));
        let reasons: Vec<_> = reasons.collect();
        burst.drain(..).for_each(|packet| near.cache.free(packet));
        (sent, left, reasons)
    };
    // Longer than the interface carries, and too long for the other end of the wire alone.
    ip(&format!("link set dev {} mtu 1000", pair.b));
    let (sent, left, reasons) = offer(&mut near, &[100, 1_600, 101, 1_200, 102]);
    assert_eq!((sent, left), (3, vec![1_600, 1_200]));
    assert_eq!(reasons, [DropReason::TooBig, DropReason::TransmitRefused]);
    let mut got = Vec::new();
    far.poll_for(3, |_, packet| got.push(packet.len()));
    assert_eq!(got, [100, 101, 102]);
    assert_eq!(near.monitor.counters().sent, 3);
    ip(&format!("link set dev {} down", pair.a));
    let (sent, left, reasons) = offer(&mut near, &[100, 101]);
    assert_eq!((sent, left), (0, vec![100, 101]));
    assert_eq!(reasons, [DropReason::LinkDown; 2]);
    near.close();
    far.close();
}

#[test]
fn an_interface_may_go_down_and_come_back_or_vanish() {
    if !in_own_network(module_path!(), "an_interface_may_go_down_and_come_back_or_vanish") {
        return;
    }
    let pair = VethPair::new("d");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 2));
    assert_eq!(near.send(&rounds(8, 0, 32)), 32);
    assert_eq!(far.poll_for(32, |_, _| {}), 32);
    assert_eq!(far.monitor.warnings(), Vec::<String>::new());

    ip(&format!("link set dev {} down", pair.b));
    let warnings = far.monitor.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("is down"), "{warnings:?}");
    assert_eq!(far.send(&rounds(8, 0, 4)), 0, "what cannot be sent stays");
    (0..600).for_each(|_| assert_eq!(far.poll(|_, _| {}), 0));
    ip(&format!("link set dev {} up", pair.b));
    // The first may go before the other end is ready for them.
    await_condition("nothing passes any more", || {
        near.send(&rounds(8, 0, 1));
        far.poll(|_, _| {}) > 0
    });
    let table = far.device.table().unwrap();
    let fence = table.rewrite(&[QueueId(1); 128]).unwrap();
    while !fence.passed() {
        std::thread::yield_now();
    }
    near.send(&rounds(8, 100, 32));
    let mut got = 0;
    while got < 32 {
        let seen = far.poll_for(1, |lane, packet| {
            let is_new = number(&packet.to_vec()) >= 100;
            assert!(!is_new || lane == 1, "sockets kept their places");
            got += usize::from(is_new);
        });
        assert!(seen > 0, "only {got} have come");
    }

    ip(&format!("link del {}", pair.a));
    (0..600).for_each(|_| assert_eq!(far.poll(|_, _| {}), 0));
    let warnings = far.monitor.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("is gone"), "{warnings:?}");
    assert_eq!(far.send(&rounds(8, 0, 4)), 0);
    // Nothing waits for ever.
    far.monitor.stop();
    while !far.monitor.is_exhausted() {
        std::thread::yield_now();
    }
    near.close();
    far.close();
}

#[test]
fn what_counts_as_waiting_can_be_received_at_once() {
    if !in_own_network(module_path!(), "what_counts_as_waiting_can_be_received_at_once") {
        return;
    }
    let pair = VethPair::new("n");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(config(&pair.b, 1));
    for number in 0..50 {
        assert_eq!(near.send(&rounds(8, number, 1)), 1);
        let queue = &far.queues[0].rx;
        await_condition("the packet does not arrive", || queue.backlog() > 0);
        // A lane with a backlog does not sleep: it would poll again and again until the packet can be received.
        assert_eq!(far.poll(|_, _| {}), 1, "packet {number}");
        assert_eq!(far.queues[0].rx.backlog(), 0);
    }
    near.close();
    far.close();
}

#[test]
fn a_full_ring_is_counted() {
    if !in_own_network(module_path!(), "a_full_ring_is_counted") {
        return;
    }
    let pair = VethPair::new("q");
    let mut near = open(config(&pair.a, 1));
    let mut far = open(PacketConfig { ring: 64, ..config(&pair.b, 1) });
    let mut sent = 0;
    while sent < 5_000 {
        sent += near.send(&rounds(8, 0, 32)) as u64;
        // The program sees what fits the ring and what does not, and nothing is lost before it.
        let placed = || far.device.program_counters().total().packets;
        await_condition("packets do not get as far as the ring", || placed() >= sent);
    }
    let full = far.monitor.counters().queue_full[0];
    assert!(full > 0);
    let got = far.poll_for((sent - full) as usize, |_, _| {});
    let counters = far.monitor.counters();
    assert_eq!((counters.queue_full[0], counters.arrived), (full, sent));
    assert_eq!(got as u64 + full, sent);
    near.close();
    far.close();
}

#[test]
fn the_longest_filter_is_accepted() {
    if !in_own_network(module_path!(), "the_longest_filter_is_accepted") {
        return;
    }
    let pair = VethPair::new("l");
    let entry = |i: u8| Match {
        ethertype: Some(0x0800),
        protocol: Some(i),
        address: Some("10.0.0.0/8".parse().unwrap()),
        port: Some(53),
    };
    let filter = Filter {
        take: (10..26).map(entry).collect(),
        leave: (0..16).map(entry).collect(),
        ..Filter::default()
    };
    let mut near = open(config(&pair.a, 1));
    let mut far = open(PacketConfig { filter, ..config(&pair.b, 1) });
    assert_eq!(near.send(&rounds(4, 0, 4)), 4);
    assert_eq!(far.poll_for(4, |_, _| {}), 4);
    near.close();
    far.close();
}

#[test]
fn what_cannot_be_opened_is_named() {
    if !in_own_network(module_path!(), "what_cannot_be_opened_is_named") {
        return;
    }
    let pool = crate::support::pool(8);
    let error = |config| PacketDevice::open(config, &pool).err().expect("it cannot be opened");
    let missing = error(config("rbpf-missing", 1));
    assert!(matches!(missing, InterfaceError::NoInterface { .. }), "{missing}");
    assert!(matches!(error(config("lo", 0)), InterfaceError::NoQueue));
    let rings = error(PacketConfig { ring: 0, ..config("lo", 1) });
    assert!(matches!(rings, InterfaceError::Ring { slots: 0, .. }), "{rings}");
}
