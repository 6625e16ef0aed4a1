//! A packet on its way through a lane, with everything that was found out about it.

use rheostat_base::{DropReason, ShardId, Time};
use rheostat_packet::{FlowKey, Headers, Mbuf, Tuple};
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::{Side, Steering};

use super::TimeSource;

/// Why a packet is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// It carries its flow's key.
    Flow,
    /// An ICMP error about a packet of the flow whose key it carries.
    IcmpError,
    /// A fragment that has yet to see the fragment tracker of its home shard.
    Fragment,
    /// It belongs to no flow: not IP, or an ICMP message about no packet.
    Orphan,
}

/// A packet, its layers, and its place.
#[derive(Debug)]
pub struct Arrival {
    /// The packet.
    pub packet: Mbuf,
    /// Where its headers lie.
    pub headers: Headers,
    /// The key of its flow, oriented; for a fragment that of its datagram, without ports; all zero
    /// for an orphan.
    pub key: FlowKey,
    /// The hash of `key` in flow tables.
    pub hash: FlowHash,
    /// When it arrived: its time stamp, or the time of the poll, as the run counts time.
    pub now: Time,
    /// The shard whose owner processes it.
    pub shard: ShardId,
    /// The side it came from.
    pub side: Side,
    /// Whether it travels from the key's first endpoint to the second.
    pub forward: bool,
    /// Why it is here.
    pub kind: ArrivalKind,
}

impl Arrival {
    /// Parses a packet and finds the shard it belongs to. A packet that cannot be parsed comes back
    /// with the reason to drop it.
    pub(crate) fn classify(
        packet: Mbuf,
        steering: &Steering,
        hasher: &FlowHasher,
        time: TimeSource,
        now: Time,
    ) -> Result<Arrival, (Mbuf, DropReason)> {
        let Ok(headers) = Headers::parse(&packet) else {
            return Err((packet, DropReason::Malformed));
        };
        let now = match time {
            TimeSource::Packet => packet.meta.timestamp,
            TimeSource::Poll => now,
        };
        let tuple = Tuple::of(&packet, &headers);
        let mut arrival = Arrival::unplaced(packet, headers, now);
        match tuple {
            Tuple::Flow(key) => {
                arrival.orient(key, steering);
                arrival.kind = ArrivalKind::Flow;
                arrival.shard = steering.place(&arrival.packet.meta, &arrival.key);
                arrival.hash = hasher.hash(&arrival.key);
            }
            Tuple::IcmpError(key) => {
                arrival.kind = ArrivalKind::IcmpError;
                arrival.rekey(key, steering, hasher);
            }
            Tuple::Fragment(key, _) => {
                arrival.orient(key, steering);
                arrival.kind = ArrivalKind::Fragment;
                arrival.shard = steering.home_of_fragment(&arrival.key);
            }
            Tuple::None => arrival.side = steering.side_of_device(arrival.packet.meta.device),
        }
        Ok(arrival)
    }

    /// A packet of which nothing is known yet but its headers.
    #[inline]
    pub(crate) fn unplaced(packet: Mbuf, headers: Headers, now: Time) -> Arrival {
        Arrival {
            packet,
            headers,
            key: FlowKey::NONE,
            hash: FlowHash(0),
            now,
            shard: ShardId(0),
            side: Side::Inside,
            forward: true,
            kind: ArrivalKind::Orphan,
        }
    }

    /// Gives the packet the key of the flow that software found it to belong to. `key` is in the
    /// packet's direction.
    pub(crate) fn rekey(&mut self, key: FlowKey, steering: &Steering, hasher: &FlowHasher) {
        self.orient(key, steering);
        self.shard = steering.shard_of_key(&self.key);
        self.hash = hasher.hash(&self.key);
    }

    fn orient(&mut self, key: FlowKey, steering: &Steering) {
        let oriented = steering.orient(self.packet.meta.device, key);
        self.key = oriented.key;
        self.side = oriented.side;
        self.forward = oriented.forward;
    }
}
