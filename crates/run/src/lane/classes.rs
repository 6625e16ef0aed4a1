//! The lane's part when classes of traffic are measured: see [`crate::classes`].

use std::sync::Arc;

use rheostat_base::{DeviceId, Time};
use rheostat_state::FlowHasher;
use rheostat_steer::policy::{Class, Load};

use super::{Batch, PacketInfo, PacketKind};
use crate::classes::{ClassMeter, Classes, FlowName, HeavyFlows, HeavyShare, Timing};
use crate::shard_set::ShardSet;

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
    /// [`ClassMeter::stop`] and [`ClassMeter::commit`].
    pub(super) is_measured: bool,
    /// [`ClassState::note_sampled`].
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

    /// Looks at a batch that is about to be processed.
    #[inline(never)]
    pub(super) fn start(&mut self, batch: &mut Batch) -> Measuring {
        // Before the batch is timed.
        let is_sampled = self.heavy.as_mut().is_some_and(HeavyFlows::takes_batch);
        if is_sampled {
            self.sample(batch);
        }
        Measuring { is_measured: self.meter.start(batch, true), is_sampled }
    }

    /// Notes the flow of the packet of the batch that was sampled. At the end of an epoch, returns the parts that flows have in their
    /// shards' work. `name_away` is the name of a flow that is away.
    #[cold]
    pub(super) fn note_sampled(
        &mut self,
        shards: &mut ShardSet,
        hasher: &FlowHasher,
        now: Time,
        name_away: impl Fn(u32) -> Option<FlowName>,
    ) -> Option<Vec<(FlowName, Load)>> {
        let ClassState { meter, heavy: Some(heavy), sampled } = self else { return None };
        let Sampled { info, bytes, is_regular } = sampled.take()?;
        let name = if is_regular { name_of(&info, shards, hasher, name_away) } else { None };
        let name = name.filter(|name| meter.class_of_flow(&name.key) == Class::Regular);
        heavy.note(info.shard, name, bytes);
        if !heavy.is_due(now) {
            return None;
        }
        let parts = heavy.parts();
        let owned = |(name, _): &&(FlowName, Load)| shards.get(name.shard).is_some();
        let share = |(name, part): &(FlowName, Load)| HeavyShare { shard: name.shard, part: *part };
        meter.figures().publish(parts.iter().filter(owned).map(share).collect());
        heavy.age(now);
        Some(parts)
    }
}

/// The name of a packet's flow, if the table knows it: new flows have none until they are established.
fn name_of(
    info: &PacketInfo,
    shards: &mut ShardSet,
    hasher: &FlowHasher,
    name_away: impl Fn(u32) -> Option<FlowName>,
) -> Option<FlowName> {
    let shard = shards.get_mut(info.shard)?;
    let key = info.key();
    if let Some(detached) = shard.table.detached(info.hash, &key) {
        return name_away(detached.number);
    }
    let id = shard.table.find_now(info.hash, &key)?;
    let key = shard.table.flow(id)?.key();
    Some(FlowName { shard: info.shard, hash: hasher.hash(&key), key })
}
