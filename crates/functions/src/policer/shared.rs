//! The policer whose buckets are in objects that all lanes share: for chains whose packets cannot be placed by the metered
//! address, so that one subscriber has flows on several lanes.

use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_run::Metrics;
use rheostat_state::object::Distributed;
use rheostat_state::txn::Objects;

use super::subscriber::Subscriber;
use super::{Bucket, COLOURS, LINGER, Policer, PolicerConfig};
use crate::ageing_map::{AgeingMap, Entry};
use rheostat_nf::{Cx, FunctionSpec, NetworkFunction, Outcome, Packet, Verdict};

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
#[derive(Clone, Debug)]
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

    /// A policer with these settings that takes the place of `running`, with its buckets.
    pub fn next(config: PolicerConfig, running: &SharedPolicer) -> SharedPolicer {
        let lifetime = config.classes.slowest() + LINGER;
        let SharedPolicer { buckets, packets, .. } = running.clone();
        let buckets = buckets.ageing_by(lifetime, Duration::ZERO);
        SharedPolicer { policer: Policer::new(config), buckets, packets }
    }
}

impl NetworkFunction for SharedPolicer {
    type Flow = ();
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { name: "Policer", ..FunctionSpec::without_flows() }
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        self.non_flow(cx, packet)
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let (subscriber, meter) = match self.policer.metered(packet) {
            Ok(metered) => metered,
            Err(verdict) => return Ok(verdict),
        };
        let known = self.buckets.get(cx, &subscriber)?;
        let mut bucket =
            known.map_or(meter.full(cx.now()), |(_, held)| Bucket::of_words(held.bucket));
        // Another meter may have filled it.
        meter.adapt(&mut bucket);
        let before = self.policer.colour_before(packet);
        let colour = meter.colour(&mut bucket, cx.now(), self.policer.bytes(packet), before);
        let held = Held { bucket: bucket.to_words(), subscriber, _padding: 0 };
        match known {
            Some((lease, _)) => self.buckets.replace(cx, lease, held)?,
            None if self.buckets.enter(cx, held)?.is_ok() => {}
            None => return Ok(self.policer.without_room()),
        }
        self.packets.update(cx, |packets| packets[colour as usize] += 1)?;
        Ok(self.policer.apply(packet, colour))
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.buckets.reclaim(cx)
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        for (name, packets) in COLOURS.into_iter().zip(self.packets.total()) {
            metrics.add(name, packets);
        }
    }
}
