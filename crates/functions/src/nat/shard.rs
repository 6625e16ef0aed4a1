//! What a NAT keeps per shard.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_base::ShardId;
use rheostat_ip::ShardLimit;
use rheostat_nf::{ShardInfo, ShardState};
use rheostat_packet::FlowKey;
use rheostat_state::Handle;
use rheostat_steer::{PortClasses, Steering};

use super::Nat;
use super::choice::{Bounds, Suitable};
use super::crowd::Crowds;
use super::flow::{Ends, FlowState};
use super::log::{LogEnd, MappingEvent, MappingLog};
use super::mapping::{MappingId, Mappings};
use super::pool::Part;
use super::ports::PortSets;
use super::silence::Silence;
use super::usage::{PortUsage, UsageEnd};

/// The ports that lead to each shard.
#[derive(Debug)]
pub(super) struct Classes {
    ports: ProtocolClasses,
    queries: ProtocolClasses,
}

/// The classes of ports of one protocol, with the bounds of those that the configuration gives out.
#[derive(Debug)]
pub(super) struct ProtocolClasses {
    ports: PortClasses,
    bounds: Vec<Bounds>,
    configured: RangeInclusive<u16>,
}

/// One class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class<'a> {
    /// Its ports: even ones, ascending, and then odd ones, ascending.
    pub(super) ports: &'a [u16],
    bounds: &'a Bounds,
    of: &'a ProtocolClasses,
}

impl Classes {
    pub(super) fn new(steering: &Steering, configured: &RangeInclusive<u16>) -> Classes {
        let [ports, queries] = [17, 1].map(|protocol| {
            let ports = PortClasses::new(steering, protocol);
            let bounds = ports.members().iter().map(|class| Bounds::of(class, configured));
            let bounds = bounds.collect();
            ProtocolClasses { ports, bounds, configured: configured.clone() }
        });
        Classes { ports, queries }
    }

    #[inline]
    pub(super) fn of(&self, protocol: u8) -> &ProtocolClasses {
        if protocol == 1 { &self.queries } else { &self.ports }
    }
}

impl ProtocolClasses {
    /// As [`PortClasses::rank`].
    #[inline]
    pub(super) fn rank(&self, port: u16) -> usize {
        self.ports.rank(port)
    }

    /// As [`PortClasses::leading_to`].
    #[inline]
    pub(super) fn leading_to(
        &self,
        shard: ShardId,
        key: &FlowKey,
        steering: &Steering,
    ) -> Class<'_> {
        let class = self.ports.class_leading_to(shard, key, steering);
        Class { ports: &self.ports.members()[class], bounds: &self.bounds[class], of: self }
    }
}

impl Class<'_> {
    /// Which of the class's ports suit a flow from the port `inner`, of those that a host may have: the bounds of all that the
    /// configuration gives out are known, those of a block of ports are searched for.
    #[inline]
    pub(super) fn suitable(self, inner: u16, part: &Part, privileged: bool) -> Suitable {
        let rank = Some(self.of.rank(inner)).filter(|rank| self.ports.get(*rank) == Some(&inner));
        match part.ports == self.of.configured {
            true => Suitable::of(self.bounds, rank, (inner, privileged)),
            false => Suitable::of(&Bounds::of(self.ports, &part.ports), rank, (inner, privileged)),
        }
    }
}

/// The classes of a run, the same for all shards: made with the first of them, before there are packets.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::disallowed_types,
    reason = "how packets are placed is known when the first shard is made"
)]
pub(super) struct SharedClasses(Arc<std::sync::OnceLock<Arc<Classes>>>);

impl SharedClasses {
    pub(super) fn get(&self, steering: &Steering, ports: &RangeInclusive<u16>) -> Arc<Classes> {
        self.0.get_or_init(|| Arc::new(Classes::new(steering, ports))).clone()
    }
}

/// The state of a NAT in one shard: the ports that are the shard's to give out, and their hosts.
#[derive(Debug)]
pub struct NatShard {
    pub(super) id: ShardId,
    /// Where flows have their state.
    pub(super) place: Handle<FlowState>,
    pub(super) steering: Arc<Steering>,
    pub(super) classes: Arc<Classes>,
    pub(super) rng: StdRng,
    pub(super) sets: PortSets,
    pub(super) crowds: Crowds,
    /// The endpoints of a flow that is about to end because another has them: its end is noted already.
    pub(super) displaced: Option<Ends>,
    /// The zone of the flow that was opened last.
    pub(super) zone: u32,
    /// Where the ports in use are published, if they are watched.
    pub(super) usage: Option<UsageEnd>,
    pub(super) mappings: Mappings,
    pub(super) permissions: Permissions,
    pub(super) answers: ShardLimit,
    pub(super) silence: Silence,
    pub(super) log: Option<LogEnd>,
    pub(super) counts: Counts,
}

impl ShardState<Nat> for NatShard {
    fn of(nat: &Nat, shard: ShardInfo, place: Handle<FlowState>) -> NatShard {
        let config = &nat.rules.config;
        NatShard {
            id: shard.id,
            place,
            rng: NatShard::rng(shard.seed),
            sets: PortSets::new(nat.rules.pool.len()),
            crowds: Crowds::default(),
            displaced: None,
            zone: 0,
            usage: nat.usage.as_ref().map(PortUsage::open),
            classes: nat.classes.get(&shard.steering, &config.ports),
            steering: shard.steering,
            mappings: Mappings::default(),
            permissions: Permissions::default(),
            answers: nat.errors.of_shard(config.answers_per_second, shard.shards),
            silence: Silence::new(config.silence),
            log: nat.log.as_ref().map(MappingLog::open),
            counts: Counts::default(),
        }
    }

    fn follow(&mut self, nat: &Nat, _: &ShardInfo) {
        self.answers.set_own(nat.rules.config.answers_per_second);
        self.silence.set(nat.rules.config.silence);
        self.log = match (self.log.take(), &nat.log) {
            (Some(end), Some(log)) if end.is_of(log) => Some(end),
            (_, log) => log.as_ref().map(MappingLog::open),
        };
    }
}

impl NatShard {
    /// Random numbers that cannot be predicted without `seed`.
    pub(super) fn rng(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed)
    }

    /// Writes an event to the log, if there is one.
    pub(super) fn note(&mut self, event: MappingEvent) {
        if let Some(log) = &mut self.log
            && !log.note(event)
        {
            self.counts.log_lost += 1;
        }
    }
}

/// What a NAT counts in one shard.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// External endpoints given out, and taken back.
    pub(super) created: u64,
    pub(super) ended: u64,
    /// Of those given out, the ones with the inner endpoint's port.
    pub(super) preserved: u64,
    /// Those of closed connections that others got before they had rested, and those that a host lost
    /// because they were not answered.
    pub(super) reused: u64,
    pub(super) taken: u64,
    /// Flows between hosts inside.
    pub(super) hairpinned: u64,
    /// Events that did not get into the log.
    pub(super) log_lost: u64,
}

/// The hosts outside whose packets mappings let in, beyond those that they know themselves, with the flows that account for it.
#[derive(Debug, Default)]
pub(super) struct Permissions(HashMap<(MappingId, Ipv4Addr), u32>);

impl Permissions {
    pub(super) fn grant(&mut self, mapping: MappingId, remote: Ipv4Addr) {
        *self.0.entry((mapping, remote)).or_default() += 1;
    }

    pub(super) fn revoke(&mut self, mapping: MappingId, remote: Ipv4Addr) {
        if let Entry::Occupied(mut flows) = self.0.entry((mapping, remote)) {
            *flows.get_mut() -= 1;
            if *flows.get() == 0 {
                flows.remove();
            }
        }
    }

    pub(super) fn has(&self, mapping: MappingId, remote: Ipv4Addr) -> bool {
        self.0.contains_key(&(mapping, remote))
    }
}
