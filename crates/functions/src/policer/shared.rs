//! The policer whose buckets are in objects that all lanes share: for chains whose packets cannot be placed by the metered
//! address, so that one subscriber has flows on several lanes.

use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::DropReason;
use rheostat_run::Metrics;
use rheostat_state::object::Distributed;
use rheostat_state::txn::Objects;
use rheostat_steer::PacketSet;

use super::subscriber::Subscriber;
use super::{Action, Bucket, COLOURS, LINGER, Policer, PolicerConfig, mark};
use crate::ageing_map::{AgeingMap, Entry};
use rheostat_nf::{Admission, Cx, NetworkFunction, Outcome, Packet, ShardInfo, Verdict};

/// The bucket of a subscriber.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Held {
    bucket: [u64; 3],
    subscriber: Subscriber,
    _padding: u32,
}

impl Entry for Held {
    type Key = Subscriber;

    fn key(&self) -> Subscriber {
        self.subscriber
    }
}

/// The policer on shared objects.
#[derive(Debug)]
pub struct SharedPolicer {
    policer: Policer,
    buckets: AgeingMap<Held>,
    packets: Distributed<[u64; 3]>,
}

impl SharedPolicer {
    /// A policer with these settings.
    pub fn new(config: PolicerConfig, objects: &Objects) -> SharedPolicer {
        // A bucket that was not touched for so long is full, and a new one is no different.
        let lifetime = config.classes.slowest() + LINGER;
        let capacity = config.subscribers;
        let buckets =
            AgeingMap::new(objects, "policer buckets", capacity, lifetime, Duration::ZERO);
        let merge = |own: &mut [u64; 3], other: &[u64; 3]| {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        };
        let packets = Distributed::new(objects, "policer counts", [0; 3], merge, Duration::ZERO);
        SharedPolicer { policer: Policer::new(config), buckets, packets }
    }
}

impl NetworkFunction for SharedPolicer {
    type Flow = ();
    type Shard = ();

    fn name(&self) -> &'static str {
        self.policer.name()
    }

    fn packet_set(&self) -> PacketSet {
        PacketSet::NONE
    }

    fn local(&self, _: ShardInfo) {}

    fn first(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Admission<()>> {
        unreachable!("without a packet set there are no flows")
    }

    fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, (): &mut ()) -> Outcome<Verdict> {
        unreachable!("without a packet set there are no flows")
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let PolicerConfig { classes, actions, .. } = &self.policer.config;
        let Some(ends) = packet.addresses() else {
            let pass = self.policer.config.pass_non_ip;
            return Ok(if pass { Verdict::Forward } else { Verdict::Drop(DropReason::NotIp) });
        };
        if !self.policer.is_metered(packet) {
            return Ok(Verdict::Forward);
        }
        let (address, subscriber) = self.policer.config.subject.of(packet.side(), &ends);
        let Some(meter) = classes.meter(classes.class_of(address)) else {
            return Ok(Verdict::Forward);
        };
        let known = self.buckets.get(cx, &subscriber)?;
        let mut bucket =
            known.map_or(meter.full(cx.now()), |(_, held)| Bucket::of_words(held.bucket));
        let before = self.policer.colour_before(packet);
        let colour = meter.colour(&mut bucket, cx.now(), self.policer.bytes(packet), before);
        let held = Held { bucket: bucket.to_words(), subscriber, _padding: 0 };
        match known {
            Some((lease, _)) => self.buckets.replace(cx, lease, held)?,
            None if self.buckets.enter(cx, held)?.is_ok() => {}
            None if self.policer.config.pass_when_full => return Ok(Verdict::Forward),
            None => return Ok(Verdict::Drop(DropReason::TableFull)),
        }
        self.packets.update(cx, |packets| packets[colour as usize] += 1)?;
        match actions.of(colour) {
            Action::Drop => Ok(Verdict::Drop(DropReason::Policed)),
            action => {
                mark(packet, action, colour);
                Ok(Verdict::Forward)
            }
        }
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.buckets.reclaim(cx)
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        for (name, packets) in COLOURS.into_iter().zip(self.packets.total()) {
            metrics.add(name, packets);
        }
    }
}
