//! Packets that a lane runs: those of its devices, those that re-enter (fragments, hairpins, replies of a pool), and the service on
//! all of them.

use rheostat_base::{DeviceId, DropReason, LaneId, ShardId, Time};
use rheostat_capture::trace::Step;
use rheostat_packet::{BURST, FlowKey, HashKind, Headers, Mbuf, Tuple};
use rheostat_state::{DatagramId, FragmentTracker, Tracked};

use super::batch::Spare;
use super::classes::Measuring;
use super::classify::{Classifier, Owned};
use super::joint::Visitor;
use super::mirror::note_place;
use super::receivers::{Reception, SortBy};
use super::{HandoffPacket, Lane, PacketInfo, PacketKind, Places, TimeSource, pool_client};
use crate::migrate::Place;
use crate::stages::BurstStage;

/// How many packets a poll took.
#[derive(Default)]
pub(super) struct PolledPackets {
    /// Packets from devices, and the bursts that they came in.
    pub(super) received: usize,
    pub(super) bursts: usize,
    /// Replies of a pool.
    pub(super) completed: usize,
}

impl Lane {
    /// Takes a burst from each device and runs it; returns how many packets there were, in how many bursts.
    ///
    /// Where lanes take turns, a burst is a packet or two. A lane then takes several in a row, and one poll's costs are shared by as many
    /// packets as elsewhere: up to [`BURST`], or until the service has worked for so long that the poll's time is old.
    pub(super) fn receive(&mut self, now: Time) -> (usize, usize) {
        let (mut received, mut bursts) = (0, 0);
        for device in 0..self.reception.receivers.len() {
            let mut row = 0;
            loop {
                let count = self.receive_from(device, now);
                if count == 0 {
                    break;
                }
                row += count;
                bursts += 1;
                if !self.reception.takes_turns || row >= BURST || self.is_behind(now) {
                    break;
                }
            }
            received += row;
        }
        (received, bursts)
    }

    /// Whether the service has worked for so long in the poll that began at `now` that it goes by a later time.
    fn is_behind(&self, now: Time) -> bool {
        self.time == TimeSource::Poll && self.out.now() > now
    }

    /// Takes a burst from a device and runs it; returns how many packets there were.
    fn receive_from(&mut self, device: usize, now: Time) -> usize {
        self.out.end_stage(BurstStage::Rest);
        let queue = &mut self.reception.receivers[device];
        let count = queue.recv(&mut self.reception.burst, self.out.pool(), now);
        self.out.end_stage(BurstStage::Receive);
        if count == 0 {
            return 0;
        }
        self.reception.received_by[device] += count as u64;
        self.counters.received.add(count as u64);
        let device = DeviceId(device as u8);
        if self.out.mirror().is_armed() {
            self.out.mirror().received(device, &mut self.reception.burst, &self.steering);
        }
        self.fetch();
        match self.reception.sort_by {
            SortBy::Flows => self.admit_flows(device, now),
            SortBy::Shards => self.admit_shards(device, now),
            SortBy::Nothing => self.admit_all(now),
        }
        if self.reception.takes_turns {
            let Lane { joint, batch, shards, out, reception, .. } = self;
            joint.end_reception(batch, (shards, out), reception, device.index());
        }
        self.out.end_stage(BurstStage::Classify);
        self.offload.pick_flow(&self.batch);
        self.process();
        self.out.end_stage(BurstStage::Run);
        count
    }

    /// Asks for the first lines of the packets received.
    fn fetch(&mut self) {
        let mut bytes = 0;
        for packet in &self.reception.burst {
            packet.prefetch();
            bytes += packet.len() as u64;
        }
        self.counters.received_bytes.add(bytes);
    }

    /// Takes a burst as it is.
    fn admit_all(&mut self, now: Time) {
        let Lane { reception: Reception { burst, .. }, batch, time, latest, unusual, .. } = self;
        for (packet, info) in burst.iter().zip(batch.spare(burst.len()).infos) {
            info.now = time.of(packet, now);
            info.set_usual(packet.mark() == 0 && !unusual.includes(packet.stamp()));
            *latest = (*latest).max(info.now);
        }
        batch.commit_all(burst);
    }

    /// Sorts a burst by the shards of its packets into those to process here, and those for other lanes.
    fn admit_shards(&mut self, device: DeviceId, now: Time) {
        let Lane { steering, hasher, time, unusual, reception, batch, .. } = self;
        let burst = &mut reception.burst;
        let by = Classifier { steering, hasher, time: *time, now, unusual: *unusual };
        let (first, count) = (batch.len(), burst.len());
        let Lane { ownership, shards, load, .. } = self;
        let side = steering.side_of_device(device);
        let infos = batch.spare(count).infos;
        let found =
            by.hashed(side, burst, infos, &Owned { ownership, shards, loads: &load.shards });
        self.latest = self.latest.max(found.latest);
        for (place, info) in infos.iter_mut().enumerate() {
            info.set_usual(!found.left.contains(place));
        }
        if found.left.is_empty() {
            return batch.commit_all(burst);
        }
        by.unhashed(found.left, burst, infos);
        self.sort(first, found.left, Places::default());
    }

    /// Sorts a burst by the flows of its packets into those to process here, those for other lanes, and fragments.
    fn admit_flows(&mut self, device: DeviceId, now: Time) {
        let Lane { steering, hasher, time, unusual, reception, batch, .. } = self;
        let burst = &mut reception.burst;
        let by = Classifier { steering, hasher, time: *time, now, unusual: *unusual };
        let (first, count) = (batch.len(), burst.len());
        let mut left = Places::first(count);
        let Spare { infos, probes } = batch.spare(count);
        if let Some(side) = steering.plain_side(device) {
            let Lane { ownership, shards, load, .. } = self;
            let spare = Spare { infos: &mut *infos, probes };
            let found =
                by.plain(side, burst, spare, &Owned { ownership, shards, loads: &load.shards });
            self.latest = self.latest.max(found.latest);
            left = found.left;
            if left.is_empty() {
                return batch.commit_all(burst);
            }
        }
        let malformed = by.all(left, burst, infos);
        if self.reception.shares_queues && !self.shards.is_joint() {
            self.keep_flowless(count);
        }
        self.sort(first, left, malformed);
    }

    /// Leaves those of the next `count` packets that belong to no flow with the lane that claimed them: no flow's state waits
    /// for them in a shard, and their hash says no more than which lanes may claim them.
    fn keep_flowless(&mut self, count: usize) {
        for info in self.batch.spare(count).infos {
            if info.kind() == PacketKind::NonFlow {
                info.shard = self.shards.next_owned(info.shard).unwrap_or(info.shard);
            }
        }
    }

    /// Sorts a burst of whose packets the places from `first` on say what was found out: those that are `left` may have to go
    /// elsewhere, nothing is known of the malformed among them, and all others stay.
    fn sort(&mut self, first: usize, left: Places, malformed: Places) {
        let mut burst = std::mem::take(&mut self.reception.burst);
        for (place, packet) in burst.drain(..).enumerate() {
            if !left.contains(place) {
                self.batch.commit(packet, first + place);
                continue;
            }
            if malformed.contains(place) {
                self.out.drop(packet, DropReason::Malformed);
                continue;
            }
            let info = self.batch.written(first + place);
            let (shard, kind) = (info.shard, info.kind());
            self.latest = self.latest.max(info.now);
            if packet.mark() != 0 {
                let home = self.home_elsewhere(info);
                let owner = home.unwrap_or_else(|| self.ownership.destination(shard));
                note_place(self.out.mirror(), &packet, info, (self.id, owner));
            }
            if self.ownership.place(shard) != Place::Local
                || self.is_misdirected(&packet, shard)
                || self.home_elsewhere(info).is_some()
            {
                let info = *info;
                // Should it stay here, it is written down no further behind than it was.
                self.route_received(HandoffPacket { packet, info });
                continue;
            }
            self.load.shards.count(shard, packet.len());
            if kind == PacketKind::Fragment {
                let info = *info;
                self.fragments.push(HandoffPacket { packet, info });
            } else {
                self.shards.prefetch(shard, info.hash);
                self.batch.commit(packet, first + place);
            }
        }
        self.reception.burst = burst;
    }

    /// Receives, and goes on with what a pool has done; again, if it had done something. Members that are given one task at a time
    /// answer it meanwhile, so what a poll costs is shared by several, up to [`BURST`].
    pub(super) fn receive_and_complete(&mut self, now: Time) -> PolledPackets {
        let mut taken = PolledPackets::default();
        loop {
            let (packets, bursts) = self.receive(now);
            self.track_fragments();
            let completed = self.complete();
            taken.received += packets;
            taken.bursts += bursts;
            taken.completed += completed;
            if completed == 0 || taken.completed >= BURST || taken.received >= BURST {
                return taken;
            }
            self.ring_desk();
            self.out.flush();
        }
    }

    /// Lets the service go on with what the pool has done. Returns how much that was.
    #[inline]
    pub(super) fn complete(&mut self) -> usize {
        let Some(client) = pool_client(&mut *self.service) else { return 0 };
        let ready = client.collect();
        if ready == 0 {
            return 0;
        }
        let Lane { shards, service, out, latest, .. } = self;
        let visits = Visitor { shards, service: &mut **service, out }.settle(Some(*latest));
        let completed = if shards.is_joint() { visits } else { ready };
        self.run_reinjected();
        completed
    }

    /// Lets the pool know of the tasks that this poll gave it.
    #[inline]
    pub(super) fn ring_desk(&mut self) {
        if let Some(client) = pool_client(&mut *self.service) {
            client.ring();
            self.counters.at_pool.set(client.packets() as u64);
        }
    }

    /// Shows fragments to the trackers of their home shards, and runs those whose flow is known; again if some were hairpins.
    pub(super) fn track_fragments(&mut self) {
        while !self.fragments.is_empty() {
            let mut fragments = std::mem::take(&mut self.fragments);
            fragments.drain(..).for_each(|fragment| self.track(fragment));
            // None was added meanwhile: those of known flows are no fragments for their trackers.
            self.fragments = fragments;
            self.count_held();
            self.process();
        }
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
        let (headers, now, shard) = (info.headers, info.now, info.shard);
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
        let tracker = self.tracker(shard);
        let datagram = DatagramId::new(&key, fragment.id);
        match tracker.track(datagram, fragment, first, packet, now) {
            Tracked::Release { key, packet } => self.send_to_flow(key, packet),
            Tracked::Hold => {}
            Tracked::Drop { reason, packet } => self.out.drop(packet, reason),
        }
        while let Some((key, packet)) = self.tracker(shard).next_released() {
            self.send_to_flow(key, packet);
        }
        while let Some((reason, packet)) = self.tracker(shard).next_dropped() {
            self.out.drop(packet, reason);
        }
    }

    fn tracker(&mut self, shard: ShardId) -> &mut FragmentTracker {
        self.shards.tracker_mut(shard).expect("owned, as steering saw")
    }

    /// Sends a fragment, whose flow has this key in the fragment's direction, to the flow's owner.
    fn send_to_flow(&mut self, key: FlowKey, packet: Mbuf) {
        let Ok(headers) = Headers::parse(&packet) else {
            return self.out.drop(packet, DropReason::Malformed);
        };
        let now = self.time.of(&packet, self.latest);
        let (steering, hasher) = (&self.steering, &self.hasher);
        let info = PacketInfo::of_known_fragment(&packet, headers, key, steering, hasher, now);
        self.enter_again(HandoffPacket { packet, info });
    }

    pub(super) fn count_held(&mut self) {
        self.counters.held.set(self.shards.fragments_held() as u64);
    }

    /// Runs the packets that arrive once more, and all that comes of them.
    pub(super) fn run_reinjected(&mut self) {
        if self.out.has_reinjected() {
            self.reinject();
            self.process();
            self.track_fragments();
        }
    }

    /// Places hairpins: packets from inside to an address that stands for another host inside (RFC 4787, section 6). Translated, they
    /// arrive once more, as if from outside.
    #[cold]
    fn reinject(&mut self) {
        let mut packets = self.out.take_reinjected();
        for mut packet in packets.drain(..) {
            // The device hashed other addresses.
            packet.set_hash(0, HashKind::None);
            let Lane { steering, hasher, time, latest, unusual, .. } = self;
            let by = Classifier { steering, hasher, time: *time, now: *latest, unusual: *unusual };
            match by.one(&packet) {
                Ok(info) => self.enter_again(HandoffPacket { packet, info }),
                Err(reason) => self.out.drop(packet, reason),
            }
        }
        self.out.reuse_reinjected(packets);
    }

    /// Brings a packet whose place has been determined once more to the owner of its shard.
    fn enter_again(&mut self, placed: HandoffPacket) {
        let HandoffPacket { packet, info } = &placed;
        if packet.mark() != 0 {
            let owner = self.ownership.destination(info.shard);
            note_place(self.out.mirror(), packet, info, (self.id, owner));
        }
        self.route_to_owner(placed);
    }

    /// Where a fragment meets the others of its datagram, if that is another claimant of this lane's queue.
    #[inline]
    pub(super) fn home_elsewhere(&self, info: &PacketInfo) -> Option<LaneId> {
        if info.kind() != PacketKind::Fragment {
            return None;
        }
        self.ownership.home(info.shard).filter(|home| *home != self.id)
    }

    /// Has the service process the batch, and all that comes back of it.
    pub(super) fn process(&mut self) {
        while !self.batch.is_empty() {
            let Lane { classes, joint, batch, shards, service, out, reception, .. } = self;
            let measuring =
                classes.as_mut().map_or(Measuring::default(), |classes| classes.start(batch));
            let mut visitor = Visitor { shards, service: &mut **service, out };
            joint.process(batch, &mut visitor);
            if self.puts_off {
                visitor.do_work(reception);
            }
            if let Some(classes) = classes.as_mut().filter(|_| measuring.is_measured) {
                classes.meter.stop();
            }
            if self.out.has_deferred() {
                self.dispatch_deferred();
            }
            let Lane { classes, shards, offload, hasher, polled, .. } = self;
            if let Some(classes) = classes.as_mut().filter(|_| measuring.is_measured) {
                classes.meter.commit();
            }
            if let Some(classes) = classes.as_mut().filter(|_| measuring.is_sampled) {
                let name_away = |number| offload.name_of(number);
                let parts = classes.note_sampled(shards, hasher, *polled, name_away);
                parts.into_iter().for_each(|parts| offload.pick_flows(&parts));
            }
            if self.out.has_reinjected() {
                self.reinject();
            }
        }
    }
}

/// The flow key that the transport header in the first fragment of a datagram has. `None` when the
/// fragment is too short to hold it.
fn key_of_first(packet: &Mbuf, headers: &Headers) -> Option<FlowKey> {
    match Tuple::of(packet, &Headers { fragment: None, ..*headers }) {
        Tuple::Flow(key) => Some(key),
        Tuple::IcmpError(_) | Tuple::Fragment(..) | Tuple::None => None,
    }
}
