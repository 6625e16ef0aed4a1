//! Packets that wait for their turn in a lane, with what was found out about them beside them.

use rheostat_packet::{Burst, Mbuf};

use super::{PacketInfo, Sender};

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
    packets: Vec<Mbuf>,
    /// One per packet from `first` on, and spare ones behind.
    infos: Vec<PacketInfo>,
    /// How many packets have been taken out at the front since there were none.
    first: usize,
}

impl Batch {
    /// Room for `count` packets before memory is asked for.
    pub fn with_capacity(count: usize) -> Batch {
        let packets = Vec::with_capacity(count);
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
        self.packets.push(packet);
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
        (packets, found)
    }

    /// Takes all packets out, in order, each with what was found out about it.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = (Mbuf, &PacketInfo)> {
        let first = std::mem::take(&mut self.first);
        self.packets.drain(..).zip(&self.infos[first..])
    }

    /// Goes on behind `count` packets that are out, or starts at the front again when all are.
    #[inline]
    fn advance(&mut self, count: usize) {
        self.first = if self.packets.is_empty() { 0 } else { self.first + count };
    }

    /// Takes the first `count` packets out, in order, each with what was found out about it. The handles of the others move up:
    /// so take as many at once as can be.
    #[inline]
    pub fn drain_first(&mut self, count: usize, mut take: impl FnMut(Mbuf, &PacketInfo)) {
        for (packet, info) in self.packets.drain(..count).zip(&self.infos[self.first..]) {
            take(packet, info);
        }
        self.advance(count);
    }

    /// Takes the first `count` packets out and sends them, in order.
    #[inline]
    pub fn send_first(&mut self, count: usize, sender: &mut Sender<'_>) {
        sender.send_all(self.packets.drain(..count));
        self.advance(count);
    }
}
