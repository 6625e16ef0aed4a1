//! What the tests of the devices share.

pub(crate) mod capture;
pub(crate) mod hostile;
pub(crate) mod live;
pub(crate) mod steerings;

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_io::{Arrival, Responder, RxQueue, SimConfig, Source};
use rheostat_packet::{Burst, LinkType, Mbuf, Mempool, MempoolConfig, PoolCache};
use rheostat_steer::{HashKey, Orientation, PrefixList, Steering};

pub(crate) fn pool(buffers: u32) -> Mempool {
    Mempool::new(&MempoolConfig { buffers, data_room: 512, headroom: 0 }).unwrap()
}

pub(crate) fn config(queues: u16, descriptors: u32) -> SimConfig {
    let both = Orientation::ByPrefix(PrefixList::default());
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, vec![both]).unwrap();
    SimConfig { descriptors, ..SimConfig::new("test", queues, Arc::new(steering)) }
}

/// A UDP packet of `flow` whose payload is `number`.
pub(crate) fn udp(flow: u16, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 53, 0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

/// The payload of a packet made by [`udp`].
pub(crate) fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[42..46].try_into().unwrap())
}

/// The flow of a packet made by [`udp`].
pub(crate) fn flow(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(bytes[34..36].try_into().unwrap())
}

/// Answers each packet made by [`udp`] once, by one of another flow whose number has the highest bit set.
pub(crate) struct Numbered;

impl Responder for Numbered {
    fn respond(&mut self, packet: &Mbuf, reply: &mut Vec<u8>) -> bool {
        let asked = number(packet.data());
        *reply = udp(flow(packet.data()) + 1_000, asked | REPLY);
        !is_reply(asked)
    }
}

const REPLY: u32 = 1 << 31;

/// Whether a packet with this number is a reply of [`Numbered`].
pub(crate) fn is_reply(number: u32) -> bool {
    number & REPLY != 0
}

/// Frames that arrive at given times.
pub(crate) struct Frames<I>(pub(crate) I);

impl<I: Iterator<Item = (Time, Vec<u8>)> + Send> Source for Frames<I> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (time, bytes) = self.0.next()?;
        frame.clear();
        frame.extend_from_slice(&bytes);
        let len = bytes.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

/// `count` packets of 64 flows in turn, one every microsecond, numbered.
pub(crate) fn numbered(count: u32) -> Box<dyn Source> {
    let frames =
        (0..count).map(|i| (Time::from_nanos(u64::from(i) * 1_000), udp(i as u16 % 64, i)));
    Box::new(Frames(frames))
}

/// Polls once for at most `limit` packets.
pub(crate) fn poll(
    rx: &mut dyn RxQueue,
    limit: usize,
    pool: &mut PoolCache,
    now: Time,
) -> Vec<Mbuf> {
    let mut burst = Burst::new();
    let filler = burst.remaining_capacity() - limit.min(burst.remaining_capacity());
    for _ in 0..filler {
        burst.push(pool.alloc(0).unwrap());
    }
    rx.recv(&mut burst, pool, now);
    let packets = burst.drain(filler..).collect();
    burst.drain(..).for_each(|packet| pool.free(packet));
    packets
}
