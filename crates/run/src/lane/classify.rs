//! The first stage of a packet's way: its headers, its flow's key and hash, and the shard it belongs to. For all packets of
//! a burst in one loop, which is a function of its own and small, so that what it works with stays in registers.

mod hashed;
mod plain;

use rheostat_base::{DropReason, Time};
use rheostat_packet::{FlowKey, Headers, Mbuf, Network, Tuple, usual};
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::{Oriented, Steering};

use super::unusual::Unusual;
use super::{PacketInfo, PacketKind, Placement, Places, TimeSource};
use crate::load::ShardLoads;
use crate::migrate::Ownership;
use crate::shard_set::ShardSet;

/// What packets are classified by.
#[derive(Clone, Copy)]
pub(super) struct Classifier<'a> {
    pub(super) steering: &'a Steering,
    pub(super) hasher: &'a FlowHasher,
    pub(super) time: TimeSource,
    /// When the packets were received.
    pub(super) now: Time,
    /// Packets to treat as unusual ones.
    pub(super) unusual: Unusual,
}

/// What a lane has.
pub(super) struct Owned<'a> {
    pub(super) ownership: &'a Ownership,
    pub(super) shards: &'a ShardSet,
    pub(super) loads: &'a ShardLoads,
}

/// What came of a burst.
pub(super) struct Found {
    /// Packets of other kinds, about which nothing was found out.
    pub(super) left: Places,
    /// The latest time of the others.
    pub(super) latest: Time,
}

impl Classifier<'_> {
    /// Writes down what is found out about the packets of `burst` at these places at the same ones in `infos`, and returns
    /// those that cannot be parsed. Nothing is known of those but their time.
    pub(super) fn all(&self, wanted: Places, burst: &[Mbuf], infos: &mut [PacketInfo]) -> Places {
        let others = self.usual(wanted, burst, infos);
        let mut malformed = Places::default();
        for place in others {
            let info = &mut infos[place];
            match PacketInfo::unusual(&burst[place], self, info.now) {
                Ok(found) => *info = found,
                Err(_) => malformed.add(place),
            }
        }
        malformed
    }

    /// The same for one packet.
    pub(super) fn one(&self, packet: &Mbuf) -> Result<PacketInfo, DropReason> {
        let mut info = PacketInfo::default();
        let (packet, place) = (std::slice::from_ref(packet), std::slice::from_mut(&mut info));
        let malformed = self.all(Places::first(1), packet, place);
        if malformed.contains(0) { Err(DropReason::Malformed) } else { Ok(info) }
    }

    /// Finds out about the usual packets, and returns the others.
    #[inline(never)]
    fn usual(&self, wanted: Places, burst: &[Mbuf], infos: &mut [PacketInfo]) -> Places {
        let by_tuples = self.steering.names_by_tuples();
        let mut others = Places::default();
        for (place, (packet, info)) in burst.iter().zip(infos).enumerate() {
            if !wanted.contains(place) {
                continue;
            }
            info.now = self.time.of(packet, self.now);
            if self.unusual.includes(packet.stamp()) {
                others.add(place);
            } else if by_tuples && let Some((headers, key)) = usual::v4(packet) {
                info.set_flow(packet, headers, key, self, true);
            } else if !by_tuples || !info.is_other_usual(packet, self) {
                others.add(place);
            }
        }
        others
    }
}

impl PacketInfo {
    /// Of IPv6, or with a tag. Apart, so that it does not take registers from packets of IPv4.
    #[inline(never)]
    fn is_other_usual(&mut self, packet: &Mbuf, by: &Classifier<'_>) -> bool {
        let found = usual::v6(packet).or_else(|| usual::tagged(packet));
        if let Some((headers, key)) = found {
            self.set_flow(packet, headers, key, by, true);
        }
        found.is_some()
    }

    /// Places a packet by its key, as one of the flow of that name where packets with such keys have flows. It is usual if
    /// nothing but `has_whole_transport` and a mark speaks against it.
    #[inline(always)]
    fn set_flow(
        &mut self,
        packet: &Mbuf,
        headers: Headers,
        key: FlowKey,
        Classifier { steering, hasher, .. }: &Classifier<'_>,
        has_whole_transport: bool,
    ) {
        let whole = key;
        let Oriented { key, side, forward } = steering.orient(packet.device(), whole);
        self.headers = headers;
        let shard = steering.place(packet.hash(), packet.hash_kind(), &key);
        let kind = match steering.admits(&whole, side) {
            true => PacketKind::Flow,
            false => PacketKind::NonFlow,
        };
        let is_usual = has_whole_transport && kind == PacketKind::Flow && packet.mark() == 0;
        let hash = hasher.hash(&key);
        self.place(&Placement { key, hash, shard, side, forward, kind, is_usual });
    }

    #[inline(never)]
    fn unusual(packet: &Mbuf, by: &Classifier<'_>, now: Time) -> Result<PacketInfo, DropReason> {
        let Classifier { steering, hasher, .. } = by;
        let headers = Headers::parse(packet).map_err(|_| DropReason::Malformed)?;
        let device = packet.device();
        let unplaced = PacketInfo::unplaced(headers, now);
        let link = packet.link();
        let mut info = match steering.tuple(packet.data(), &headers, link) {
            Tuple::Flow(key) => {
                let mut info = unplaced;
                let may_be_usual = !by.unusual.includes(packet.stamp())
                    && usual::has_whole_transport(packet, &headers);
                info.set_flow(packet, headers, key, by, may_be_usual);
                info
            }
            Tuple::IcmpError(key) => {
                let mut info = unplaced.of_flow(device, key, steering, hasher);
                info.place(&Placement { kind: PacketKind::IcmpError, ..info.placement() });
                info.or_non_flow(&key, steering)
            }
            Tuple::Fragment(key, _) => {
                let Oriented { key, side, forward } = steering.orient_whole(device, key);
                let shard = steering.home_of_fragment(&key);
                let (hash, kind, is_usual) = (FlowHash(0), PacketKind::Fragment, false);
                let placement = Placement { key, hash, shard, side, forward, kind, is_usual };
                PacketInfo::of(headers, now, &placement)
            }
            Tuple::None => {
                let side = steering.side_of_device(device);
                let mut info = PacketInfo::of(headers, now, &Placement { side, ..Placement::NONE });
                if let Some(key) = steering.fallback_tuple(packet.data(), &headers, link) {
                    info.set_flow(packet, headers, key, by, false);
                }
                info.as_non_flow()
            }
        };
        if !matches!(headers.network, Network::Ipv4 | Network::Ipv6) {
            // No address tells where it is from.
            let side = steering.side_of_device(device);
            info.place(&Placement { side, ..info.placement() });
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests;
