//! What a lane receives from its devices, on its way to the service.

use rheostat_base::{DeviceId, DropReason, LaneId, Time};
use rheostat_io::RxQueue;
use rheostat_packet::{BURST, Burst};

use super::batch::Spare;
use super::classify::{Classifier, Owned};
use super::mirror::note_place;
use super::{HandoffPacket, Lane, PacketKind, Place, Places, TimeSource};
use crate::crew::LaneNotifier;
use crate::load::LoadReporting;
use crate::service::Service;
use crate::stages::BurstStage;

/// What packets are sorted by before the service gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortBy {
    /// Their flows, for a service that keeps state.
    Flows,
    /// Their shards, for one that does not, in a run in which shards move between lanes.
    Shards,
    /// Nothing: the packets that its devices give a lane stay there.
    Nothing,
}

impl SortBy {
    pub(super) fn of(service: &dyn Service, reporting: LoadReporting) -> SortBy {
        match (service.spec().is_stateful, reporting) {
            (true, _) => SortBy::Flows,
            (false, LoadReporting::Shards) => SortBy::Shards,
            (false, LoadReporting::Nothing | LoadReporting::Lanes) => SortBy::Nothing,
        }
    }
}

/// What a lane receives by.
pub(super) struct Reception {
    /// A queue of each device.
    pub(super) receivers: Vec<Box<dyn RxQueue>>,
    /// Packets received from each device.
    pub(super) received_by: Vec<u64>,
    /// Whether other lanes receive from the same queues.
    pub(super) shares_queues: bool,
    /// Whether other lanes are kept from receiving until the lane has told packets apart.
    pub(super) takes_turns: bool,
    /// What wakes lanes, in their order, where they take turns.
    notifiers: Vec<LaneNotifier>,
    pub(super) sort_by: SortBy,
    pub(super) burst: Burst,
}

impl Reception {
    pub(super) fn new(
        mut receivers: Vec<Box<dyn RxQueue>>,
        sort_by: SortBy,
        takes_turns: bool,
    ) -> Reception {
        Reception {
            received_by: vec![0; receivers.len()],
            shares_queues: receivers
                .iter_mut()
                .filter_map(|queue| queue.as_shared())
                .any(|queue| queue.descriptors().is_some()),
            receivers,
            takes_turns,
            notifiers: Vec::new(),
            sort_by,
            burst: Burst::new(),
        }
    }

    /// Lets the lane wake others, where lanes take turns.
    pub(super) fn wake_by(&mut self, notifiers: &[LaneNotifier]) {
        if self.takes_turns {
            self.notifiers = notifiers.to_vec();
        }
    }

    /// Wakes lanes that sleep, so many at most, beginning with the one behind `own`: packets wait for them.
    #[cold]
    pub(super) fn wake_others(&self, own: LaneId, count: usize) {
        let lanes = self.notifiers.len();
        for step in 1..=count.min(lanes.saturating_sub(1)) {
            self.notifiers[(own.index() + step) % lanes].wake();
        }
    }
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
            self.end_reception(device.index());
        }
        self.out.end_stage(BurstStage::Classify);
        self.pick_flow();
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
}
