//! Lanes with a network layer, packets in memory, and time in numbers.

use std::sync::Mutex;

use rheostat_base::LaneId;
use rheostat_io::TxQueue;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::wire::MacAddress;
use rheostat_packet::{Burst, Mempool, MempoolConfig, PoolCache};

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
            let stack = Stack::new(network.clone(), lanes, ErrorsAfterChain::ToSender);
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
            Admission::Through(path) | Admission::Back(path) => stack.launch(packet, path, out),
            Admission::Consume => out.consume(packet),
            Admission::Drop(reason) => out.drop(packet, reason),
        }
        self.sent(lane)
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
