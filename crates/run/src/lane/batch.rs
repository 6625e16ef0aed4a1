//! Packets that wait for their turn in a lane, with what was found out about them beside them.

use std::ops::Range;

use rheostat_packet::{Burst, Mbuf};
use rheostat_state::Probe;

use super::{HandoffPacket, PacketInfo, Places, Sender, probe};
use crate::shard_set::ShardSet;

/// Room for what is found out about packets that come next.
pub(crate) struct Spare<'a> {
    pub(crate) infos: &'a mut [PacketInfo],
    /// Of none is it known where its flow may be.
    pub(crate) probes: &'a mut [Probe],
}

/// Packets that wait to be processed, in order. What was found out about them lies beside them and
/// stays where it was written: most of a packet's way through a lane, only its handle moves.
#[derive(Debug, Default)]
pub struct Batch {
    packets: Vec<Mbuf>,
    /// One per packet from `first` on, and spare ones behind.
    infos: Vec<PacketInfo>,
    /// As many, at the same places: where the flow of each packet may be.
    probes: Vec<Probe>,
    /// How many packets have been taken out at the front since there were none.
    first: usize,
    /// Room for what is found out about packets while others are brought before them.
    staying: Vec<PacketInfo>,
}

/// So many packets are brought before others one by one, more all at once.
const FEW: usize = 3;

impl Batch {
    /// Room for `count` packets before memory is asked for.
    pub fn with_capacity(count: usize) -> Batch {
        let packets = Vec::with_capacity(count);
        let (infos, probes) = (vec![PacketInfo::default(); count], vec![Probe::PENDING; count]);
        Batch { packets, infos, probes, first: 0, staying: Vec::new() }
    }

    /// Where to write what is found out about the next `count` packets, in order. What was written there before stays, but for
    /// probes.
    #[inline]
    pub(crate) fn spare(&mut self, count: usize) -> Spare<'_> {
        debug_assert_eq!(self.first, 0, "nothing is appended to packets that are being taken out");
        let places = self.packets.len()..self.packets.len() + count;
        if self.infos.len() < places.end {
            self.infos.resize_with(places.end, PacketInfo::default);
            self.probes.resize(places.end, Probe::PENDING);
        }
        let probes = &mut self.probes[places.clone()];
        probes.fill(Probe::PENDING);
        Spare { infos: &mut self.infos[places], probes }
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
            self.probes[at] = self.probes[place];
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
        self.spare(1).infos[0] = info;
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

    /// The packets, with what was found out about each, and where its flow may be.
    #[inline]
    pub fn parts(&mut self) -> (&mut [Mbuf], &mut [PacketInfo], &[Probe]) {
        let Batch { packets, infos, probes, first, .. } = self;
        let places = *first..*first + packets.len();
        (packets, &mut infos[places.clone()], &probes[places])
    }

    /// Probes the flows of the packets that have not been probed while others were classified: the second stage. A service that
    /// looks flows up calls it once per batch, before it looks at any.
    pub fn probe(&mut self, shards: &ShardSet) {
        let places = self.first..self.first + self.packets.len();
        probe::all(&self.infos[places.clone()], shards, &mut self.probes[places]);
    }

    /// Takes all packets out, in order, each with what was found out about it.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = (Mbuf, &PacketInfo)> {
        let first = std::mem::take(&mut self.first);
        self.packets.drain(..).zip(&self.infos[first..])
    }

    /// Moves packets for which `stays` returns false behind those of `others`; the rest close up. Both keep their order.
    pub(crate) fn part(&mut self, others: &mut Batch, mut stays: impl FnMut(&PacketInfo) -> bool) {
        debug_assert_eq!(self.first, 0, "no packets are being taken out");
        others.spare(self.len());
        let Batch { packets, infos, probes, .. } = self;
        let Batch { packets: their_packets, infos: their_infos, .. } = others;
        let (mut place, mut kept, mut moved) = (0, 0, their_packets.len());
        let out = packets.extract_if(.., |_| {
            let stays = stays(&infos[place]);
            if !stays {
                their_infos[moved] = infos[place];
                moved += 1;
            } else {
                if kept != place {
                    infos[kept] = infos[place];
                    probes[kept] = probes[place];
                }
                kept += 1;
            }
            place += 1;
            !stays
        });
        their_packets.extend(out);
    }

    /// Brings packets `first` of those at `places`, a burst at most; both parts keep their order.
    pub(crate) fn bring_first(&mut self, places: Range<usize>, first: Places) {
        debug_assert_eq!(self.first, 0, "no packets are being taken out");
        let packets = &mut self.packets[places.clone()];
        let (infos, probes) = (&mut self.infos[places.clone()], &mut self.probes[places]);
        let moves_few = Places::count(first) <= FEW;
        for (front, place) in first.enumerate() {
            packets[front..=place].rotate_right(1);
            if moves_few {
                infos[front..=place].rotate_right(1);
                probes[front..=place].rotate_right(1);
            }
        }
        if !moves_few {
            partition(infos, first, &mut self.staying);
            partition(probes, first, &mut Vec::new());
        }
    }

    /// Goes on behind `count` packets that are out, or starts at the front again when all are.
    #[inline]
    fn advance(&mut self, count: usize) {
        self.first = if self.packets.is_empty() { 0 } else { self.first + count };
    }

    /// Takes the first `count` packets out, in order, each with what was found out about it, and where its flow may be. The
    /// handles of the others move up: so take as many at once as can be.
    #[inline]
    pub fn drain_first(&mut self, count: usize, mut take: impl FnMut(Mbuf, &PacketInfo, Probe)) {
        let found = self.infos[self.first..].iter().zip(&self.probes[self.first..]);
        for (packet, (info, &probe)) in self.packets.drain(..count).zip(found) {
            take(packet, info, probe);
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

/// Brings those items of a burst `first`; both parts keep their order.
pub(crate) fn partition<T: Copy>(items: &mut [T], first: Places, staying: &mut Vec<T>) {
    staying.clear();
    let mut front = 0;
    for place in 0..items.len() {
        if first.contains(place) {
            items[front] = items[place];
            front += 1;
        } else {
            staying.push(items[place]);
        }
    }
    items[front..].copy_from_slice(staying);
}
