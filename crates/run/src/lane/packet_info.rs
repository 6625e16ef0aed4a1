//! A packet on its way through a lane, with everything that was found out about it.

use std::collections::VecDeque;

use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::{Burst, FlowKey, Headers, Mbuf};
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::{Oriented, Side, Steering};

/// Why a packet is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// It carries its flow's key.
    Flow,
    /// An ICMP error about a packet of the flow whose key it carries.
    IcmpError,
    /// A fragment that has yet to see the fragment tracker of its home shard.
    Fragment,
    /// It belongs to no flow: not IP, an ICMP message about no packet, or not of a packet set.
    NonFlow,
}

/// What was found out about a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// Where its headers lie.
    pub headers: Headers,
    /// The key of its flow, oriented; for a fragment that of its datagram, without ports; without a flow
    /// what it is placed by, all zero when that is nothing.
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
    pub kind: PacketKind,
    /// Whether it may take the fast path: a packet of its flow, of TCP or UDP, no fragment, whose transport header lies
    /// whole in the first segment, and which is not followed through the run.
    pub is_usual: bool,
}

/// A packet with what was found out about it, on its way to another lane.
#[derive(Debug)]
pub struct HandoffPacket {
    /// The packet.
    pub packet: Mbuf,
    /// What was found out about it.
    pub info: PacketInfo,
}

/// Packets that wait to be processed, in order. What was found out about them lies beside them and
/// stays where it was written: most of a packet's way through a lane, only its handle moves.
#[derive(Debug, Default)]
pub struct Batch {
    /// Contiguous: it begins at the front of its memory whenever it was empty.
    packets: VecDeque<Mbuf>,
    /// One per packet from `first` on, and spare ones behind.
    infos: Vec<PacketInfo>,
    /// How many packets have been taken out at the front since there were none.
    first: usize,
}

impl Batch {
    /// Room for `count` packets before memory is asked for.
    pub fn with_capacity(count: usize) -> Batch {
        let packets = VecDeque::with_capacity(count);
        Batch { packets, infos: vec![PacketInfo::default(); count], first: 0 }
    }

    /// Where to write what is found out about the next `count` packets, in order. What was written there before stays.
    #[inline]
    pub(crate) fn spare(&mut self, count: usize) -> &mut [PacketInfo] {
        debug_assert_eq!(self.first, 0, "nothing is appended to packets that are being taken out");
        let from = self.packets.len();
        if self.infos.len() < from + count {
            self.infos.resize_with(from + count, PacketInfo::default);
        }
        &mut self.infos[from..from + count]
    }

    /// What was written at `place`, counted from the first packet on.
    #[inline]
    pub(crate) fn written(&self, place: usize) -> &PacketInfo {
        &self.infos[place]
    }

    /// Appends a packet about which something was written at `place`: where it belongs, or further behind, when packets
    /// before it have gone elsewhere.
    #[inline]
    pub(crate) fn commit(&mut self, packet: Mbuf, place: usize) {
        let at = self.packets.len();
        debug_assert!(at <= place && place < self.infos.len(), "nothing is known of the packet");
        if at != place {
            self.infos[at] = self.infos[place];
        }
        self.packets.push_back(packet);
    }

    /// Appends all packets of a burst, about which something was written in the places behind those of all others.
    #[inline]
    pub(crate) fn commit_all(&mut self, burst: &mut Burst) {
        debug_assert!(
            self.packets.len() + burst.len() <= self.infos.len(),
            "nothing is known of the packets"
        );
        self.packets.extend(burst.drain(..));
    }

    /// Appends a packet.
    pub fn push(&mut self, HandoffPacket { packet, info }: HandoffPacket) {
        self.spare(1)[0] = info;
        self.commit(packet, self.packets.len());
    }

    /// How many packets wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// What was found out about each packet.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, PacketInfo> {
        self.found().iter()
    }

    /// What was found out about each packet, as a whole.
    #[inline]
    pub fn found(&self) -> &[PacketInfo] {
        &self.infos[self.first..self.first + self.packets.len()]
    }

    /// The packets, with what was found out about each.
    #[inline]
    pub fn parts(&mut self) -> (&mut [Mbuf], &mut [PacketInfo]) {
        let Batch { packets, infos, first } = self;
        let found = &mut infos[*first..*first + packets.len()];
        (packets.make_contiguous(), found)
    }

    /// Takes all packets out, in order, each with what was found out about it.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = (Mbuf, &PacketInfo)> {
        let first = std::mem::take(&mut self.first);
        self.packets.drain(..).zip(&self.infos[first..])
    }

    /// Starts at the front again, once all packets are out.
    #[inline]
    fn rewind(&mut self) {
        if self.packets.is_empty() {
            self.packets.clear();
            self.first = 0;
        }
    }

    /// Takes the first `count` packets out, in order, each with what was found out about it.
    #[inline]
    pub fn drain_first(&mut self, count: usize, mut take: impl FnMut(Mbuf, &PacketInfo)) {
        for (packet, info) in self.packets.drain(..count).zip(&self.infos[self.first..]) {
            take(packet, info);
        }
        self.first += count;
        self.rewind();
    }

    /// Takes the first packet out, with what was found out about it.
    #[inline]
    pub fn take_first(&mut self) -> Option<(Mbuf, &PacketInfo)> {
        let (packet, at) = (self.packets.pop_front()?, self.first);
        self.first = at + 1;
        self.rewind();
        Some((packet, &self.infos[at]))
    }
}

impl Default for PacketInfo {
    /// A packet of which nothing is known.
    fn default() -> PacketInfo {
        PacketInfo::unplaced(Headers::default(), Time::ZERO)
    }
}

impl PacketInfo {
    /// The same packet as one without a flow, unless packets with this key have one. Its place stays.
    pub(super) fn or_non_flow(mut self, key: &FlowKey, steering: &Steering) -> PacketInfo {
        if !steering.admits(key, self.side) {
            self.kind = PacketKind::NonFlow;
            self.is_usual = false;
        }
        self
    }

    /// A packet of which nothing is known yet but its headers.
    pub(super) fn unplaced(headers: Headers, now: Time) -> PacketInfo {
        PacketInfo {
            headers,
            key: FlowKey::NONE,
            hash: FlowHash(0),
            now,
            shard: ShardId(0),
            side: Side::Inside,
            forward: true,
            kind: PacketKind::NonFlow,
            is_usual: false,
        }
    }

    /// The same packet as one of the flow that software found it to belong to. `key` is in the
    /// packet's direction.
    pub(super) fn of_flow(
        self,
        device: DeviceId,
        key: FlowKey,
        steering: &Steering,
        hasher: &FlowHasher,
    ) -> PacketInfo {
        let Oriented { key, side, forward } = steering.orient(device, key);
        let (shard, hash) = (steering.shard_of_key(&key), hasher.hash(&key));
        PacketInfo { key, side, forward, shard, hash, kind: PacketKind::Flow, ..self }
    }

    /// A fragment that has met its tracker and learned the key of its flow, in its own direction.
    pub(crate) fn of_known_fragment(
        packet: &Mbuf,
        headers: Headers,
        key: FlowKey,
        steering: &Steering,
        hasher: &FlowHasher,
        now: Time,
    ) -> PacketInfo {
        let info = PacketInfo::unplaced(headers, now);
        info.of_flow(packet.device(), key, steering, hasher).or_non_flow(&key, steering)
    }
}
