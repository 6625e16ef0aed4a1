//! The lane's part when classes of traffic are measured: see [`crate::classes`].

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_steer::policy::{Class, Load};

use super::{Batch, Lane, PacketInfo, PacketKind};
use crate::classes::{ClassFigures, ClassMeter, Classes, FlowName, HeavyFlows, HeavyShare, Timing};

/// What a lane has where classes are measured.
pub(super) struct ClassState {
    pub(super) meter: ClassMeter,
    /// Where flows may leave.
    heavy: Option<HeavyFlows>,
    /// Of the batch at hand, the packet whose flow is noted.
    sampled: Option<Sampled>,
}

/// A packet whose flow is noted once its batch has been processed: the lines of the table that lead to it are there then.
struct Sampled {
    info: PacketInfo,
    /// Its part of the bytes of the lane.
    bytes: u64,
    is_regular: bool,
}

/// What is to be done when a batch has been processed.
#[derive(Clone, Copy, Default)]
pub(super) struct Measuring {
    /// [`Lane::stop_measuring`] and [`Lane::commit_measuring`].
    pub(super) is_measured: bool,
    /// [`Lane::note_sampled`].
    pub(super) is_sampled: bool,
}

impl ClassState {
    /// Of a lane that receives from devices which know arrivals or not, in a run of so many shards.
    pub(super) fn new(
        classes: Arc<Classes>,
        knows_arrivals: impl Iterator<Item = bool>,
        shards: usize,
        flows_leave: bool,
    ) -> ClassState {
        let mut timing = Timing::default();
        for (device, knows) in (0..=u8::MAX).map(DeviceId).zip(knows_arrivals) {
            timing.set(device, knows);
        }
        let meter = ClassMeter::new(classes, timing);
        let heavy = flows_leave.then(|| HeavyFlows::new(shards));
        ClassState { meter, heavy, sampled: None }
    }

    /// Takes one packet of a batch, in the name of all.
    #[cold]
    fn sample(&mut self, batch: &mut Batch) {
        let count = batch.len();
        let Some(heavy) = &mut self.heavy else { return };
        let place = heavy.next_place(count);
        let (packets, infos, _) = batch.parts();
        let (packet, info) = (&packets[place], infos[place]);
        let is_regular =
            info.kind() == PacketKind::Flow && self.meter.class_of(packet, &info) == Class::Regular;
        let bytes = (packet.len() * count) as u64;
        self.sampled = Some(Sampled { info, bytes, is_regular });
    }
}

impl Lane {
    /// What the lane measures by class, to read while it runs, if it does.
    pub fn class_figures(&self) -> Option<Arc<ClassFigures>> {
        self.classes.as_ref().map(|classes| classes.meter.figures())
    }

    /// Looks at a batch that is about to be processed.
    #[inline(never)]
    pub(super) fn start_measuring(&mut self) -> Measuring {
        let Lane { classes: Some(classes), batch, .. } = self else {
            return Measuring::default();
        };
        // Before the batch is timed.
        let is_sampled = classes.heavy.as_mut().is_some_and(HeavyFlows::takes_batch);
        if is_sampled {
            classes.sample(batch);
        }
        Measuring { is_measured: classes.meter.start(batch, true), is_sampled }
    }

    /// The service is done with a batch that is measured, but for packets that it left to the lane.
    #[cold]
    pub(super) fn stop_measuring(&mut self) {
        if let Some(classes) = &mut self.classes {
            classes.meter.stop();
        }
    }

    /// Takes in what was measured.
    #[cold]
    pub(super) fn commit_measuring(&mut self) {
        if let Some(classes) = &mut self.classes {
            classes.meter.commit();
        }
    }

    /// Notes the flow of the packet of the batch that was sampled, and at the end of an epoch, looks which flows are to be away.
    #[cold]
    pub(super) fn note_sampled(&mut self) {
        let Some(mut classes) = self.classes.take() else { return };
        if let ClassState { meter, heavy: Some(heavy), sampled } = &mut *classes
            && let Some(Sampled { info, bytes, is_regular }) = sampled.take()
        {
            let name = if is_regular { self.name_of(&info) } else { None };
            let name = name.filter(|name| meter.class_of_flow(&name.key) == Class::Regular);
            heavy.note(info.shard, name, bytes);
            if heavy.is_due(self.polled) {
                let parts = heavy.parts();
                let owned = |(name, _): &&(FlowName, Load)| self.shards.get(name.shard).is_some();
                let share =
                    |(name, part): &(FlowName, Load)| HeavyShare { shard: name.shard, part: *part };
                meter.figures().publish(parts.iter().filter(owned).map(share).collect());
                heavy.age(self.polled);
                self.pick_flows(&parts);
            }
        }
        self.classes = Some(classes);
    }

    /// The name of a packet's flow, if the table knows it: new flows have none until they are established.
    fn name_of(&mut self, info: &PacketInfo) -> Option<FlowName> {
        let shard = self.shards.get_mut(info.shard)?;
        let key = info.key();
        if let Some(detached) = shard.table.detached(info.hash, &key) {
            return self.offload.name_of(detached.number);
        }
        let id = shard.table.find_now(info.hash, &key)?;
        let key = shard.table.flow(id)?.key();
        Some(FlowName { shard: info.shard, hash: self.hasher.hash(&key), key })
    }
}
