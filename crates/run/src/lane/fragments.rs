//! Fragments on their way to their flow: first to the home shard of their datagram, which learns the
//! flow's key from the first fragment, then to the owner of the flow.

use rheostat_base::DropReason;
use rheostat_capture::trace::Step;
use rheostat_packet::{FlowKey, Headers, Mbuf, Tuple};
use rheostat_state::{DatagramId, Tracked};

use super::mirror::note_place;
use super::{HandoffPacket, Lane, PacketInfo};

impl Lane {
    /// Shows fragments to the trackers of their home shards, and sends on those whose flow is known.
    pub(super) fn track_fragments(&mut self) {
        let mut fragments = std::mem::take(&mut self.fragments);
        for fragment in fragments.drain(..) {
            self.track(fragment);
        }
        self.fragments = fragments;
        self.count_held();
        self.process();
    }

    /// Gives up datagrams that stay incomplete.
    pub(super) fn expire_fragments(&mut self) {
        let Lane { shards, latest, out, .. } = self;
        let mut expired = false;
        for tracker in shards.trackers_mut() {
            tracker.expire(*latest);
            while let Some((reason, packet)) = tracker.next_dropped() {
                expired = true;
                out.drop(packet, reason);
            }
        }
        if expired {
            self.count_held();
        }
    }

    fn track(&mut self, fragment: HandoffPacket) {
        let HandoffPacket { packet, info } = fragment;
        let PacketInfo { headers, now, shard, .. } = info;
        let (key, forward) = (info.key(), info.forward());
        // Both ends number their datagrams for themselves, so direction is part of the identity.
        let key = if forward { key } else { key.reversed() };
        let Some(fragment) = headers.fragment else {
            unreachable!("only fragments are tracked");
        };
        if packet.mark() != 0 {
            self.out.mirror().note(&packet, Step::Held);
        }
        let first = if fragment.offset == 0 { key_of_first(&packet, &headers) } else { None };
        let tracker = self.shards.tracker_mut(shard).expect("owned, as steering saw");
        let datagram = DatagramId::new(&key, fragment.id);
        let mut released = Vec::new();
        let mut dropped = Vec::new();
        match tracker.track(datagram, fragment, first, packet, now) {
            Tracked::Release { key, packet } => released.push((key, packet)),
            Tracked::Hold => {}
            Tracked::Drop { reason, packet } => dropped.push((reason, packet)),
        }
        released.extend(std::iter::from_fn(|| tracker.next_released()));
        dropped.extend(std::iter::from_fn(|| tracker.next_dropped()));
        for (key, packet) in released {
            self.send_to_flow(key, packet);
        }
        for (reason, packet) in dropped {
            self.out.drop(packet, reason);
        }
    }

    /// Sends a fragment, whose flow has this key in the fragment's direction, to the flow's owner.
    fn send_to_flow(&mut self, key: FlowKey, packet: Mbuf) {
        let Ok(headers) = Headers::parse(&packet) else {
            return self.out.drop(packet, DropReason::Malformed);
        };
        let now = self.time_of(&packet, self.latest);
        let (steering, hasher) = (&self.steering, &self.hasher);
        let info = PacketInfo::of_known_fragment(&packet, headers, key, steering, hasher, now);
        if packet.mark() != 0 {
            let owner = self.ownership.destination(info.shard);
            note_place(self.out.mirror(), &packet, &info, (self.id, owner));
        }
        self.route_to_owner(HandoffPacket { packet, info });
    }

    pub(super) fn count_held(&mut self) {
        self.counters.held.set(self.shards.fragments_held() as u64);
    }
}

/// The flow key that the transport header in the first fragment of a datagram tells. `None` when the
/// fragment is too short to hold it.
fn key_of_first(packet: &Mbuf, headers: &Headers) -> Option<FlowKey> {
    match Tuple::of(packet, &Headers { fragment: None, ..*headers }) {
        Tuple::Flow(key) => Some(key),
        Tuple::IcmpError(_) | Tuple::Fragment(..) | Tuple::None => None,
    }
}
