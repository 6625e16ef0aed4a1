//! Tap interfaces, with the kernel of this machine at the other end.
//!
//! Timed: processes, devices, sockets.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::Arc;

use rheostat_capture::{Filter, Match};

use crate::support::live::{self, Open, forward, output, transfer};
use crate::support::steerings::{DEVICES, expected, steerings};
use crate::support::{flow, hostile, number};
use rheostat_base::{DeviceId, QueueId, Time};
use rheostat_io::{Device, InterfaceError, PacketConfig, PacketDevice, TapConfig, TapDevice};
use rheostat_packet::Mbuf;
use rheostat_steer::{HashKey, HashOptions, Orientation, Steering};
use rheostat_testkit::namespace::in_own_network;
use rheostat_testkit::veth::{Host, ip};

fn steering() -> Arc<Steering> {
    let key: [u8; 40] = std::array::from_fn(|i| (i as u8).wrapping_mul(89).wrapping_add(7));
    let orientations = vec![Orientation::Inside, Orientation::Outside];
    Arc::new(Steering::new(&HashKey::new(key), 128, 128, orientations).unwrap())
}

fn config(interface: &str, queues: u16) -> TapConfig {
    // What hosts say by themselves is of no interest.
    let ipv4 = Match { ethertype: Some(0x0800), ..Match::default() };
    let filter = Filter { take: vec![ipv4], ..Filter::default() };
    TapConfig { filter, ..TapConfig::new("test", interface, queues, steering()) }
}

fn open(config: TapConfig) -> Open<TapDevice> {
    Open::new(|pool| TapDevice::open(config, pool).unwrap())
}

/// Gives this host an address on the interface, and a neighbour there.
fn address(interface: &str, network: u8) {
    ip(&format!("addr add 10.78.{network}.1/24 dev {interface}"));
    ip(&format!(
        "neigh replace 10.78.{network}.2 lladdr 02:00:00:00:78:02 dev {interface} nud permanent"
    ));
}

/// Sends numbered datagrams of several flows through the kernel.
struct Sender(Vec<UdpSocket>);

impl Sender {
    fn new(network: u8, flows: u16) -> Sender {
        let bind = |_| UdpSocket::bind(format!("10.78.{network}.1:0")).unwrap();
        let sockets: Vec<_> = (0..flows).map(bind).collect();
        for socket in &sockets {
            socket.connect(format!("10.78.{network}.2:53")).unwrap();
        }
        Sender(sockets)
    }

    fn send(&self, number: u32) {
        self.0[number as usize % self.0.len()].send(&number.to_be_bytes()).unwrap();
    }
}

#[test]
fn packets_arrive_once_in_order_on_the_lane_of_their_hash() {
    if !in_own_network(module_path!(), "packets_arrive_once_in_order_on_the_lane_of_their_hash") {
        return;
    }
    let steering = steering();
    for lanes in [1, 2, 4] {
        let mut tap = open(config("rbpft%d", lanes));
        let name = tap.device.interface().to_owned();
        assert!(name.starts_with("rbpft") && !name.contains('%'));
        address(&name, 1);
        let table = tap.device.table().unwrap();
        let sender = Sender::new(1, 100);
        let mut last: HashMap<u16, u32> = HashMap::new();
        let mut lanes_seen = vec![0; lanes.into()];
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
        let mut got = 0;
        for i in 0..10_000 {
            sender.send(i);
            if i % 25 == 24 {
                got += tap.poll(&mut check);
            }
        }
        got += tap.poll_for(10_000 - got, &mut check);
        assert_eq!(got, 10_000);
        assert!(lanes_seen.iter().all(|&count| count > 500), "{lanes_seen:?}");
        assert!(tap.device.program_counters().total().packets >= 10_000);
        let counters = tap.monitor.counters();
        assert_eq!((counters.arrived, &counters.queue_full[..]), (10_000, &[0][..]));

        tap.monitor.stop();
        while !tap.monitor.is_exhausted() {
            tap.poll(|_, _| {});
        }
        (0..50).for_each(|i| sender.send(i));
        assert_eq!(tap.poll(|_, _| {}), 0, "nothing arrives any more");
        assert_eq!(tap.monitor.counters(), counters);
        tap.close();
    }
}

#[test]
fn hostile_packets_are_placed_as_in_user_space() {
    if !in_own_network(module_path!(), "hostile_packets_are_placed_as_in_user_space") {
        return;
    }
    let (_, steering) = steerings(128).pop().unwrap();
    let steering = Arc::new(steering);
    let device = DEVICES[2];
    let tap = TapConfig { steering: steering.clone(), device, ..config("rbpfh%d", 4) };
    let mut tap = open(TapConfig { filter: Filter::default(), ..tap });
    let cable = PacketConfig::new("cable", tap.device.interface(), 1, steering.clone());
    let mut cable = Open::new(|pool| PacketDevice::open(cable, pool).unwrap());
    let frames = hostile::frames(1_000);
    let mut got = 0;
    for some in frames.chunks(16) {
        cable.send(some);
        // Some are dropped by the kernel; the others are in their queues when the call is over.
        while tap.poll(|lane, packet| {
            let bytes = packet.to_vec();
            // What the host states by itself is placed likewise.
            let (hash, _) = expected(&steering, HashOptions::AddressesOnly, device, &bytes);
            assert_eq!(steering.bucket_of_hash(hash) % 4, lane, "{bytes:02x?}");
            got += 1;
        }) > 0
        {}
    }
    assert!(got > 900, "{got}");
    cable.close();
    tap.close();
}

#[test]
fn rewriting_the_table_under_traffic_loses_nothing() {
    if !in_own_network(module_path!(), "rewriting_the_table_under_traffic_loses_nothing") {
        return;
    }
    let mut tap = open(config("rbpfw%d", 4));
    address(tap.device.interface(), 2);
    let table = tap.device.table().unwrap();
    let sender = Sender::new(2, 64);
    let mut seen = vec![0_u8; 10_000];
    let mut mark = |_: usize, packet: &Mbuf| seen[number(&packet.to_vec()) as usize] += 1;
    let mut got = 0;
    for i in 0..10_000_u32 {
        if i % 10 == 0 {
            let entry = |bucket| QueueId(((bucket + i / 10) % 4) as u16);
            let entries: Vec<_> = (0..128).map(entry).collect();
            table.rewrite(&entries).unwrap();
        }
        sender.send(i);
        if i % 25 == 24 {
            got += tap.poll(&mut mark);
        }
    }
    got += tap.poll_for(10_000 - got, &mut mark);
    assert_eq!(got, 10_000);
    assert!(seen.iter().all(|&times| times == 1));
    tap.close();
}

#[test]
fn offloaded_tcp_arrives_as_packets_of_the_right_size() {
    if !in_own_network(module_path!(), "offloaded_tcp_arrives_as_packets_of_the_right_size") {
        return;
    }
    let pool = live::pool();
    let mac = "02:00:00:00:78:03";
    let open = |device, interface: &str| {
        let mut config = config(interface, 2);
        config.device = DeviceId(device);
        Open::sharing(&pool, TapDevice::open(config, &pool).unwrap())
    };
    let (mut lan, mut wan) = (open(0, "rbpfl%d"), open(1, "rbpfm%d"));
    let host = |name, device: &Open<TapDevice>, addresses: [&str; 2]| {
        let host = Host::new(name, &[], &[], mac);
        let interface = device.device.interface();
        ip(&format!("link set dev {interface} netns rbpf{name}"));
        host.ip("link del eth");
        host.ip(&format!("link set dev {interface} name eth address {mac} up"));
        host.ip(&format!("addr add {}/24 dev eth", addresses[0]));
        host.ip(&format!("neigh replace {} lladdr {mac} dev eth nud permanent", addresses[1]));
        host
    };
    let client = host("tc", &lan, ["10.78.3.1", "10.78.3.2"]);
    let server = host("ts", &wan, ["10.78.3.2", "10.78.3.1"]);
    let (server, mut client) = transfer(&client, &server, "AF_INET", "10.78.3.2");
    let mut longest = 0;
    while client.try_wait().unwrap().is_none() {
        forward(&mut lan, &mut wan, &mut longest);
    }
    assert_eq!(output(client), output(server));
    assert_eq!(longest, 1_514, "full packets, and none longer");
    let counters = lan.monitor.counters();
    assert!(counters.arrived > 14_000, "{counters:?}");
    assert_eq!(counters.malformed + counters.oversize, 0);
    drop(lan);
    wan.close();
}

#[test]
fn what_is_sent_reaches_the_kernel() {
    if !in_own_network(module_path!(), "what_is_sent_reaches_the_kernel") {
        return;
    }
    let mut tap = open(config("rbpfs%d", 1));
    address(tap.device.interface(), 4);
    let name = tap.device.interface().to_owned();
    let listener = UdpSocket::bind("10.78.4.1:4053").unwrap();
    listener.set_read_timeout(Some(std::time::Duration::from_secs(120))).unwrap();
    let mac = std::fs::read_to_string(format!("/sys/class/net/{name}/address")).unwrap();
    let mac: Vec<u8> =
        mac.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let ethernet = rheostat_packet::build::Ethernet {
        source: [2, 0, 0, 0, 0x78, 2],
        destination: mac.try_into().unwrap(),
        vlan: None,
    };
    use rheostat_packet::build::{FrameBuilder, Payload, Transport};
    let (from, to) = ("10.78.4.2".parse().unwrap(), "10.78.4.1".parse().unwrap());
    let transport = Transport::Udp { ports: (53, 4_053) };
    let frame = FrameBuilder::new(from, to, transport, Payload::Bytes(b"hello"))
        .with_ethernet(ethernet)
        .to_vec();
    assert_eq!(tap.send(std::slice::from_ref(&frame)), 1);
    let mut received = [0; 16];
    let (len, peer) = listener.recv_from(&mut received).unwrap();
    assert_eq!((&received[..len], peer), (&b"hello"[..], "10.78.4.2:53".parse().unwrap()));

    ip(&format!("link set dev {name} down"));
    let warnings = tap.monitor.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("is down"), "{warnings:?}");
    assert_eq!(tap.send(std::slice::from_ref(&frame)), 0, "what cannot be sent stays");
    ip(&format!("link set dev {name} up"));
    assert_eq!(tap.send(std::slice::from_ref(&frame)), 1);
    let counters = tap.monitor.counters();
    assert_eq!((counters.sent, counters.copied), (2, 2));

    ip(&format!("link del {name}"));
    let warnings = tap.monitor.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("is gone"), "{warnings:?}");
    assert_eq!(tap.send(&[frame]), 0);
    assert_eq!(tap.poll(|_, _| {}), 0);
    tap.monitor.stop();
    // Nothing waits for ever.
    while !tap.monitor.is_exhausted() {
        tap.poll(|_, _| {});
    }
    tap.close();
}

#[test]
fn a_full_queue_is_counted() {
    if !in_own_network(module_path!(), "a_full_queue_is_counted") {
        return;
    }
    let mut tap = open(config("rbpfq%d", 1));
    address(tap.device.interface(), 5);
    ip(&format!("link set dev {} txqueuelen 32", tap.device.interface()));
    let sender = Sender::new(5, 4);
    for i in 0..2_000 {
        // The kernel reports drops to senders.
        let _ = sender.0[0].send(&u32::to_be_bytes(i));
    }
    let full = tap.monitor.counters().queue_full[0];
    assert!(full > 0);
    let got = tap.poll_for(2_000 - full as usize, |_, _| {}) as u64;
    let counters = tap.monitor.counters();
    assert_eq!(counters.arrived, got + counters.queue_full[0], "{counters:?}");
    // No more than what was sent is IPv4, and only that counts.
    assert_eq!(counters.arrived, 2_000, "{counters:?}");
    tap.close();
}

#[test]
fn what_cannot_be_opened_is_named() {
    if !in_own_network(module_path!(), "what_cannot_be_opened_is_named") {
        return;
    }
    let pool = crate::support::pool(8);
    let error = |config| TapDevice::open(config, &pool).err().expect("it cannot be opened");
    assert!(matches!(error(config("rbpfx", 0)), InterfaceError::NoQueue));
    let long = error(config("rbpf-a-name-too-long", 1));
    assert!(matches!(long, InterfaceError::Name(_)), "{long}");
    let loopback = error(config("lo", 1));
    assert!(matches!(loopback, InterfaceError::Occupied { .. }), "{loopback}");
}
