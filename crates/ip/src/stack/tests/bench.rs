//! Lanes with a network layer, packets in memory, and time in numbers.

use std::sync::Mutex;

use rheostat_base::LaneId;
use rheostat_io::TxQueue;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::wire::MacAddress;
use rheostat_packet::{Burst, Mempool, MempoolConfig, PoolCache};
use rheostat_run::PacketInfo;

use super::super::*;
use crate::interface::Interface;
use crate::network::Policy;
use crate::route::Route;

pub(super) const LAN: MacAddress = [2, 0, 0, 0, 1, 1];
pub(super) const WAN: MacAddress = [2, 0, 0, 0, 2, 1];
pub(super) const PEER: MacAddress = [2, 0, 0, 0, 2, 9];

/// Lanes on one network, and what they have.
pub(super) struct Bench {
    pool: Mempool,
    pub(super) lanes: Vec<(Stack, Output)>,
    sent: Sent,
}

/// What has left any lane.
pub(super) type Sent = Arc<Mutex<Vec<(DeviceId, Vec<u8>)>>>;

/// Keeps the frames that are sent on a device.
pub(super) struct Keeper(DeviceId, Sent);

impl TxQueue for Keeper {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        for packet in burst.drain(..) {
            self.1.lock().unwrap().push((self.0, packet.to_vec()));
            pool.free(packet);
        }
        count
    }
}

pub(super) fn interfaces() -> Vec<Interface> {
    let mut lan = Interface::new(DeviceId(0), "lan", LAN);
    lan.addresses = vec!["10.0.0.1/24".parse().unwrap(), "fd00::1/64".parse().unwrap()];
    let mut wan = Interface::new(DeviceId(1), "wan", WAN);
    wan.addresses = vec!["192.0.2.1/24".parse().unwrap()];
    wan.proxied = ["192.0.2.100/31".parse().unwrap()].into_iter().collect();
    vec![lan, wan]
}

pub(super) fn network(policy: Policy) -> Network {
    let default = Route::via("0.0.0.0/0".parse().unwrap(), "192.0.2.254".parse().unwrap());
    Network::new(interfaces(), &[default], policy).unwrap()
}

pub(super) fn quiet() -> Policy {
    Policy { announce: false, ..Policy::default() }
}

impl Bench {
    pub(super) fn new(network: Network, lanes: usize) -> Bench {
        let config = MempoolConfig { buffers: 512, ..MempoolConfig::default() };
        let pool = Mempool::new(&config).unwrap();
        let network = Arc::new(network);
        let sent = Sent::default();
        let lane = |number| {
            let queue =
                |device| Box::new(Keeper(DeviceId(device), sent.clone())) as Box<dyn TxQueue>;
            let stack = Stack::new(network.clone(), ErrorsAfterChain::ToSender);
            let queues = (0..2).map(queue).collect();
            (stack, Output::new(LaneId(number), queues, PoolCache::new(pool.clone())))
        };
        Bench { lanes: (0..lanes as u16).map(lane).collect(), pool, sent }
    }

    /// Lets a frame arrive on a lane, and returns what leaves it.
    pub(super) fn receive(
        &mut self,
        lane: usize,
        device: u8,
        frame: &[u8],
        now: Time,
    ) -> Vec<(DeviceId, Vec<u8>)> {
        let (stack, out) = &mut self.lanes[lane];
        let mut packet = out.pool().alloc_from(frame).unwrap();
        packet.set_device(DeviceId(device));
        out.counters().received.increment();
        out.set_now(now);
        stack.refresh(out);
        match stack.admit(&mut packet, out) {
            Admission::Through(path) | Admission::Back(path) => stack.send(packet, path, out),
            Admission::Consume | Admission::Transport | Admission::TransportError => {
                out.consume(packet)
            }
            Admission::Drop(reason) => out.drop(packet, reason),
        }
        self.sent(lane)
    }

    /// The packets of a burst that has arrived on the first lane, of which those at some places are `usual`.
    pub(super) fn arrive(
        &mut self,
        frames: &[(u8, Vec<u8>)],
        usual: &dyn Fn(usize) -> bool,
        now: Time,
    ) -> (Vec<Mbuf>, Vec<PacketInfo>) {
        let (stack, out) = &mut self.lanes[0];
        let packet = |(device, frame): &(u8, Vec<u8>)| {
            let mut packet = out.pool().alloc_from(frame).unwrap();
            packet.set_device(DeviceId(*device));
            packet
        };
        let packets = frames.iter().map(packet).collect();
        let info = |place| {
            let mut info = PacketInfo::default();
            info.now = now;
            info.set_usual(usual(place));
            info
        };
        out.counters().received.add(frames.len() as u64);
        out.set_now(now);
        stack.refresh(out);
        (packets, (0..frames.len()).map(info).collect())
    }

    /// Lets a lane look after what is due.
    pub(super) fn tick(&mut self, lane: usize, now: Time) -> Vec<(DeviceId, Vec<u8>)> {
        let (stack, out) = &mut self.lanes[lane];
        if stack.next_deadline() <= now {
            out.set_now(now);
            stack.tick(out);
        }
        self.sent(lane)
    }

    pub(super) fn sent(&mut self, lane: usize) -> Vec<(DeviceId, Vec<u8>)> {
        let (_, out) = &mut self.lanes[lane];
        out.flush();
        assert!(!out.has_reinjected());
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.lanes.iter().map(|(_, out)| out.counters().dropped.get(reason)).sum()
    }

    /// Ends the run: every packet is accounted for, and every buffer is home.
    pub(super) fn finish(mut self) {
        for (stack, out) in &mut self.lanes {
            let sample = out.counters().sample();
            let entered = sample.received + sample.originated;
            let left = sample.sent + sample.consumed + sample.waiting + sample.dropped_total();
            assert_eq!(entered, left, "{sample:?}");
            stack.finish(out);
            assert_eq!(out.counters().waiting.get(), 0);
            out.finish();
        }
        assert_eq!(self.pool.available(), self.pool.capacity());
    }
}

pub(super) fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A datagram in a frame for `to`.
pub(super) fn udp(to: MacAddress, source: &str, destination: &str, len: usize) -> Vec<u8> {
    let transport = Transport::Udp { ports: (1_000, 53) };
    frame(to, source, destination, transport, len)
}

pub(super) fn frame(
    to: MacAddress,
    source: &str,
    destination: &str,
    transport: Transport<'_>,
    len: usize,
) -> Vec<u8> {
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    FrameBuilder::new(source, destination, transport, Payload::Pattern(len))
        .with_ethernet(Ethernet { source: PEER, destination: to, vlan: None })
        .to_vec()
}

pub(super) fn arp_reply(sender: &str, to: &str) -> Vec<u8> {
    let mut reply = [WAN, PEER].concat();
    reply.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    reply.extend(PEER);
    reply.extend(sender.parse::<std::net::Ipv4Addr>().unwrap().octets());
    reply.extend(WAN);
    reply.extend(to.parse::<std::net::Ipv4Addr>().unwrap().octets());
    reply
}

/// Next hops that are known, each with its device and a link address of its own: the gateways, and hosts on a link.
pub(super) const NEIGHBOURS: [(u8, &str, MacAddress); 4] = [
    (1, "192.0.2.254", [2, 0, 0, 0, 1, 1]),
    (0, "10.0.0.2", [2, 0, 0, 0, 2, 2]),
    (0, "fd00::9", [2, 0, 0, 0, 3, 3]),
    (0, "fd00::2", [2, 0, 0, 0, 4, 4]),
];

/// A network that knows its neighbours.
pub(super) fn known() -> Network {
    let six = Route::via("2001:db8::/32".parse().unwrap(), "fd00::9".parse().unwrap());
    let default = Route::via("0.0.0.0/0".parse().unwrap(), "192.0.2.254".parse().unwrap());
    let network = Network::new(interfaces(), &[default, six], quiet()).unwrap();
    for (device, address, mac) in NEIGHBOURS {
        network.set_neighbour(DeviceId(device), address.parse().unwrap(), mac);
    }
    network
}

/// What leaves when a burst arrives of which packets at some places are usual, and how many packets took a fast path.
pub(super) type Receive = fn(
    &mut Bench,
    &[(u8, Vec<u8>)],
    &dyn Fn(usize) -> bool,
    Time,
) -> (Vec<(DeviceId, Vec<u8>)>, usize);

/// Lets bursts arrive whose packets are usual, and others: the same leaves, and the same is counted. Returns how many packets took
/// the fast path.
pub(super) fn compare_ways(
    receive: Receive,
    bursts: &[Vec<(u8, Vec<u8>)>],
    network: fn() -> Network,
) -> usize {
    let mut benches = [0, 1, 2].map(|_| Bench::new(network(), 1));
    let mut passed = 0;
    for (second, frames) in (0..).zip(bursts) {
        let [all, some, none] = &mut benches;
        let (expected, fast) = receive(none, frames, &|_| false, s(second));
        assert_eq!(fast, 0);
        let (sent, fast) = receive(all, frames, &|_| true, s(second));
        passed += fast;
        assert_eq!(sent, expected);
        let (sent, _) = receive(some, frames, &|place| place % 3 != 1, s(second));
        assert_eq!(sent, expected);
        let samples = [all, some, none].map(|bench| bench.lanes[0].1.counters().sample());
        let metrics = samples.map(|sample| {
            (sample.sent, sample.originated, sample.consumed, sample.waiting, sample.dropped)
        });
        assert_eq!((metrics[0], metrics[1]), (metrics[2], metrics[2]));
    }
    benches.into_iter().for_each(Bench::finish);
    passed
}

/// Makes the checksum of a header of IPv4 right again.
pub(super) fn summed(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = rheostat_packet::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}
