//! The lane's part when classes of traffic are measured: see [`crate::classes`].

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_steer::policy::{Class, Load};

use super::{Lane, PacketKind};
use crate::classes::{ClassFigures, ClassMeter, Classes, FlowName, HeavyFlows, HeavyShare, Timing};

/// What a lane has where classes are measured.
pub(super) struct ClassState {
    pub(super) meter: ClassMeter,
    /// Where flows may leave.
    heavy: Option<HeavyFlows>,
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
        ClassState { meter, heavy: flows_leave.then(|| HeavyFlows::new(shards)) }
    }
}

impl Lane {
    /// What the lane measures by class, to read while it runs, if it does.
    pub fn class_figures(&self) -> Option<Arc<ClassFigures>> {
        self.classes.as_ref().map(|classes| classes.meter.figures())
    }

    /// Looks at a batch that is about to be processed. Returns whether it is measured.
    #[inline(never)]
    pub(super) fn start_measuring(&mut self) -> bool {
        let Some(classes) = &mut self.classes else { return false };
        // Before the batch is timed.
        if classes.heavy.as_mut().is_some_and(HeavyFlows::takes_batch) {
            self.sample_flow();
        }
        self.classes.as_mut().is_some_and(|classes| classes.meter.start(&mut self.batch, true))
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

    /// Notes one packet of the batch for its flow, and at the end of an epoch, looks which flows are to be away.
    fn sample_flow(&mut self) {
        let Some(mut classes) = self.classes.take() else { return };
        let heavy = classes.heavy.as_mut().expect("only asked for where flows may leave");
        let count = self.batch.len();
        let place = heavy.next_place(count);
        let (packets, infos, _) = self.batch.parts();
        let (packet, info) = (&packets[place], infos[place]);
        let bytes = (packet.len() * count) as u64;
        let is_flow = info.kind() == PacketKind::Flow
            && classes.meter.class_of(packet, &info) == Class::Regular;
        let name = if is_flow { self.name_of(&info) } else { None };
        let name = name.filter(|name| classes.meter.class_of_flow(&name.key) == Class::Regular);
        heavy.note(info.shard, name, bytes);
        if heavy.is_due(self.polled) {
            let parts = heavy.parts();
            let owned = |(name, _): &&(FlowName, Load)| self.shards.get(name.shard).is_some();
            let share =
                |(name, part): &(FlowName, Load)| HeavyShare { shard: name.shard, part: *part };
            classes.meter.figures().publish(parts.iter().filter(owned).map(share).collect());
            heavy.age(self.polled);
            self.pick_flows(&parts);
        }
        self.classes = Some(classes);
    }

    /// The name of a packet's flow, if the table knows it: new flows have none until they are established.
    fn name_of(&mut self, info: &super::PacketInfo) -> Option<FlowName> {
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
