//! Address and port translation of IPv4 with mappings that all lanes share: endpoint-independent, and written as
//! if there were one lane (NFOS, section 5.2: the NAT).
//!
//! It has no packet set. Packets are spread evenly over lanes, and the two directions of a flow may meet different
//! ones, so all that is known of flows and mappings lies in shared objects. What the NAT does with it is what
//! [`Nat`](super::Nat) does, by the same rules.

mod bind;
mod counts;
mod endpoints;
mod flows;
mod permissions;
mod record;
mod silence;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::Rng;
use rheostat_base::DropReason;
use rheostat_ip::{RateLimit, RunLimit};
use rheostat_packet::wire::{TcpFlags, icmpv4};
use rheostat_packet::{FlowKey, Network};
use rheostat_run::Metrics;
use rheostat_state::object::{Boxed, Distributed, Lease, Map, Vector};
use rheostat_state::txn::{Objects, Transactional};
use rheostat_steer::{PacketSet, Side};

use self::counts::Counts;
use self::endpoints::Endpoints;
use self::flows::Flows;
use self::permissions::Permissions;
use self::record::{Flow, Inner, KEPT, MAPPED, PASSED, Place, TURNS_ROUND};
use self::silence::Silence;
use super::config::NatConfig;
use super::flow::{Endpoint, Ends};
use super::pool::BlockError;
use super::rules::{Inbound, Outbound, Rules, prohibit};
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::{FunctionSpec, NetworkFunction, Prefetch};
use rheostat_nf::{Outcome, Verdict};

/// Flows whose time is up that are ended before a new one is made, and in a shard's regular turn.
const SWEPT: usize = 4;
const SWEPT_REGULARLY: usize = 64;
/// Unsolicited SYNs that are answered in a shard's regular turn.
const ANSWERED: usize = 8;
/// Turns in which all sets of ports are visited once.
const PARTS: usize = 16;

/// How large what lanes share is, and how exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Flows there may be.
    pub flows: usize,
    /// A flow's time begins anew with a packet, but not more often than this. Flows live so much longer, so that
    /// none lives shorter than it should.
    pub refresh_interval: Duration,
}

impl Default for Sharing {
    fn default() -> Sharing {
        Sharing { flows: 1 << 18, refresh_interval: Duration::from_secs(1) }
    }
}

/// The NAT on shared objects.
#[derive(Debug)]
pub struct SharedNat {
    rules: Rules,
    flows: Flows,
    endpoints: Endpoints,
    /// What stands for an endpoint inside.
    mappings: Map<Inner, Place>,
    permissions: Permissions,
    /// External ports each host may have, and has.
    quota: Option<(u32, Map<u32, u32>)>,
    silence: Option<Silence>,
    /// Of each lane.
    answers: Vector<RateLimit, Boxed>,
    errors: RunLimit,
    counts: Distributed<Counts>,
}

/// What a NAT on shared objects goes on with that takes the place of another.
#[derive(Debug)]
pub struct RunningSharedNat {
    flows: Flows,
    endpoints: Endpoints,
    mappings: Map<Inner, Place>,
    permissions: Permissions,
    /// External ports that each host has, where they are counted.
    hosts: Option<Map<u32, u32>>,
    silence: Option<Silence>,
    answers: Vector<RateLimit, Boxed>,
    counts: Distributed<Counts>,
}

impl SharedNat {
    /// A NAT with these settings, of which `mapping` and `deterministic` do not count, on `objects`. External ports are
    /// given out in an order that `rng` draws.
    ///
    /// # Errors
    /// [`BlockError`] when the ports cannot be divided among the hosts inside.
    pub fn new(
        config: NatConfig,
        sharing: Sharing,
        objects: &Objects,
        rng: &mut impl Rng,
    ) -> Result<SharedNat, BlockError> {
        let rules = Rules::new(NatConfig { deterministic: false, ..config })?;
        let config = &rules.config;
        let Sharing { flows, refresh_interval } = sharing;
        let limit = RateLimit::new(config.answers_per_second, config.answers_per_second);
        Ok(SharedNat {
            flows: Flows::new(objects, flows, &config.timeouts, refresh_interval),
            endpoints: Endpoints::new(objects, &rules, rng),
            mappings: Map::new(objects, "mappings", flows),
            permissions: Permissions::new(objects, flows),
            quota: config.quota.map(|most| (most, Map::new(objects, "ports of hosts", flows))),
            silence: config.silence.map(|lasts| Silence::new(objects, lasts)),
            answers: Vector::boxed(objects, "answers", vec![limit; objects.lanes()]),
            errors: RunLimit::unlimited(),
            counts: Counts::of_lanes(objects),
            rules,
        })
    }

    /// A NAT with these settings that takes the place of `running`, and goes on with its flows, ports and mappings. No key may be
    /// different of those that [`NatFunction`](super::NatFunction) names as fixed.
    ///
    /// # Errors
    /// As [`SharedNat::new`].
    pub fn next(
        config: NatConfig,
        sharing: Sharing,
        running: &RunningSharedNat,
    ) -> Result<SharedNat, BlockError> {
        let rules = Rules::new(NatConfig { deterministic: false, ..config })?;
        let RunningSharedNat { flows, endpoints, mappings, permissions, hosts, silence, .. } =
            running;
        let config = &rules.config;
        Ok(SharedNat {
            flows: flows.timed_by(&config.timeouts, sharing.refresh_interval),
            endpoints: endpoints.clone(),
            mappings: mappings.clone(),
            permissions: permissions.clone(),
            quota: config.quota.zip(hosts.clone()),
            silence: silence.clone().zip(config.silence).map(|(known, lasts)| known.lasting(lasts)),
            answers: running.answers.clone(),
            errors: RunLimit::unlimited(),
            counts: running.counts.clone(),
            rules,
        })
    }

    /// What a NAT that takes this one's place goes on with.
    pub fn running(&self) -> RunningSharedNat {
        RunningSharedNat {
            flows: self.flows.clone(),
            endpoints: self.endpoints.clone(),
            mappings: self.mappings.clone(),
            permissions: self.permissions.clone(),
            hosts: self.quota.as_ref().map(|(_, hosts)| hosts.clone()),
            silence: self.silence.clone(),
            answers: self.answers.clone(),
            counts: self.counts.clone(),
        }
    }

    /// The same under a limit of errors that holds for the whole run, beside that of each lane.
    #[must_use]
    pub fn limited_by(self, errors: RunLimit) -> SharedNat {
        SharedNat { errors, ..self }
    }

    /// A packet of a flow, or an ICMP error about one.
    fn known(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        (lease, before): (Lease, Flow),
    ) -> Outcome<Verdict> {
        let (mut flow, outbound) = (before, packet.is_forward());
        let ends = flow.ends();
        let onward = match outbound && flow.has(TURNS_ROUND) {
            true => Verdict::Hairpin,
            false => Verdict::Forward,
        };
        let is_passed = flow.has(PASSED);
        if !is_passed && !ends.are_named_by(&packet.arrival_key(), outbound) {
            return Ok(Verdict::Drop(DropReason::NoMapping));
        }
        if is_error(packet) {
            // It neither refreshes nor ends the flow: it can be forged (RFC 5508, REQ-6).
            let done = if is_passed { Ok(()) } else { ends.translate_error(packet, outbound) };
            return Ok(done.map_or_else(Verdict::Drop, |()| onward));
        }
        if flow.has(MAPPED) && !flow.has(KEPT) {
            if outbound {
                self.keep(cx, &mut flow)?;
            } else if !self.is_kept(cx, &flow)? {
                self.flows.end(cx, lease, &flow)?;
                self.release(cx, &flow)?;
                return Ok(Verdict::Drop(DropReason::NoMapping));
            }
        }
        let segment = packet.tcp().map(|segment| segment.flags());
        if let Some(flags) = segment {
            flow.session.note(outbound, flags);
        }
        if !is_passed && let Err(reason) = ends.translate(packet, outbound) {
            return Ok(Verdict::Drop(reason));
        }
        // Of what comes from outside, only what TCP shows to be wanted (RFC 4787, REQ-6).
        let refreshes = outbound || segment.is_some() || is_passed;
        if refreshes && self.flows.refresh(cx, lease, &mut flow)? {
            self.prolong(cx, &flow)?;
        }
        if flow != before {
            self.flows.set(cx, lease, &flow)?;
        }
        Ok(onward)
    }

    /// A packet from inside that has no flow.
    fn outbound(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let key = packet.key();
        let (inner, remote, flags, is_hairpin) = match self.rules.outbound(packet) {
            Outbound::Pass(None) => return Ok(Verdict::Forward),
            Outbound::Pass(Some(ends)) => return self.pass(cx, packet, ends),
            Outbound::Refuse(reason) => return Ok(Verdict::Drop(reason)),
            Outbound::Open { inner, remote, flags, is_hairpin } => {
                (inner, remote, flags, is_hairpin)
            }
        };
        self.sweep(cx, SWEPT)?;
        let mut flow = match self.bind(cx, &key, (inner, remote))? {
            Ok(flow) => flow,
            Err(reason) => {
                self.refuse(cx, packet)?;
                return Ok(Verdict::Drop(reason));
            }
        };
        if is_hairpin {
            flow.flags |= TURNS_ROUND;
            self.count(cx, |counts| counts.hairpinned += 1)?;
        }
        if let Some(silence) = &self.silence {
            silence.forget(cx, &flow.ends().external_key(key.protocol(), key.zone()))?;
        }
        let onward = if is_hairpin { Verdict::Hairpin } else { Verdict::Forward };
        self.begin(cx, packet, flow, flags, onward)
    }

    /// A packet from outside that has no flow.
    fn inbound(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let Inbound::Ask { external, remote, flags, opens, is_syn } = self.rules.inbound(packet)
        else {
            return Ok(Verdict::Forward);
        };
        let admitted = match opens {
            true => self.admit(cx, &packet.key(), (external, remote))?,
            false => None,
        };
        let Some(mut flow) = admitted else {
            if is_syn && let Some(silence) = &self.silence {
                silence.note(cx, packet)?;
            }
            return Ok(Verdict::Drop(DropReason::NoMapping));
        };
        if self.rules.is_external(remote.0) {
            flow.flags |= TURNS_ROUND;
        }
        self.sweep(cx, SWEPT)?;
        self.begin(cx, packet, flow, flags, Verdict::Forward)
    }

    /// Begins a flow with its first packet.
    fn begin(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        mut flow: Flow,
        flags: Option<TcpFlags>,
        onward: Verdict,
    ) -> Outcome<Verdict> {
        let outbound = packet.is_forward();
        if let Some(flags) = flags {
            flow.session.note(outbound, flags);
        }
        self.count_in(cx, &flow)?;
        let drop = match flow.ends().translate(packet, outbound) {
            Err(reason) => reason,
            Ok(()) if self.flows.open(cx, &flow)? => return Ok(onward),
            Ok(()) => DropReason::TableFull,
        };
        self.release(cx, &flow)?;
        Ok(Verdict::Drop(drop))
    }

    /// Lets a flow of a host that is not translated through, and what comes back.
    fn pass(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &Packet<'_>,
        (inner, remote): (Endpoint, Endpoint),
    ) -> Outcome<Verdict> {
        // Packets from these come in without a flow.
        if self.rules.config.exempt.contains(remote.0.into()) {
            return Ok(Verdict::Forward);
        }
        self.sweep(cx, SWEPT)?;
        let ends = Ends { inner, external: inner, remote };
        let mut flow = Flow::new(ends, &packet.key(), PASSED);
        if let Some(segment) = packet.tcp() {
            flow.session.note(true, segment.flags());
        }
        Ok(match self.flows.open(cx, &flow)? {
            true => Verdict::Forward,
            false => Verdict::Drop(DropReason::TableFull),
        })
    }

    /// Ends flows of this lane's whose time is up.
    fn sweep(&self, cx: &mut impl Transactional, most: usize) -> Outcome<()> {
        for _ in 0..most {
            let Some(flow) = self.flows.expired(cx)? else { break };
            self.release(cx, &flow)?;
        }
        Ok(())
    }

    /// Whether one more answer may be given.
    fn may_answer(&self, cx: &mut impl Transactional) -> Outcome<bool> {
        let (lane, now) = (cx.txn().lane().index(), cx.txn().now());
        let rate = self.rules.config.answers_per_second;
        let allow = |limit: &mut RateLimit| {
            // Another NAT may have made the limit.
            limit.set(rate, rate);
            limit.allow(now)
        };
        Ok(self.answers.update(cx, lane, allow)? && self.errors.allow(now))
    }

    fn refuse(&self, cx: &mut Cx<'_, ()>, packet: &Packet<'_>) -> Outcome<()> {
        if self.may_answer(cx)? { prohibit(cx, packet) } else { Ok(()) }
    }

    fn count(&self, cx: &mut impl Transactional, count: impl FnOnce(&mut Counts)) -> Outcome<()> {
        self.counts.update(cx, count)
    }
}

impl NetworkFunction for SharedNat {
    type Flow = ();
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec {
            translation: Some(self.rules.translation()),
            // Fragments come once their ports are known, and errors by the packet they are about.
            ..FunctionSpec::named_by(PacketSet::none_with_ports())
        }
    }

    #[inline]
    fn prefetch(&self, stage: Prefetch<'_, SharedNat>) {
        if let Prefetch::Packet(packet, ahead) = stage {
            self.flows.prefetch(&packet.arrival_key(), ahead);
        }
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let is_v4 = packet.headers().network == Network::Ipv4;
        if !is_v4 || packet.key() == FlowKey::NONE {
            return Ok(self.rules.without_flow(packet.headers()));
        }
        if let Some(known) = self.flows.find(cx, &packet.key())? {
            return self.known(cx, packet, known);
        }
        if is_error(packet) {
            return Ok(self.rules.without_flow(packet.headers()));
        }
        if packet.is_later_fragment() {
            // The first fragment was refused, or its flow is over.
            return Ok(Verdict::Drop(DropReason::NoMapping));
        }
        match packet.side() {
            Side::Inside => self.outbound(cx, packet),
            Side::Outside => self.inbound(cx, packet),
        }
    }

    /// Without a packet set, no packet belongs to a flow.
    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        self.non_flow(cx, packet)
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.sweep(cx, SWEPT_REGULARLY)?;
        // Which sets have their turn follows from the shard, as several shards have theirs at once, and from the time, as a run
        // may have fewer shards than there are parts.
        let turn = cx.shard_id().index() + (cx.now().as_nanos() >> 29) as usize;
        self.endpoints.reclaim(cx, turn % PARTS, PARTS)?;
        let Some(silence) = &self.silence else { return Ok(()) };
        for _ in 0..ANSWERED {
            let Some(syn) = silence.next(cx)? else { break };
            if self.may_answer(cx)? {
                syn.answer(cx)?;
            }
        }
        Ok(())
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        self.counts.total().add_to(metrics);
    }
}

/// Whether the packet is an ICMP error: its key is that of the packet it is about.
fn is_error(packet: &Packet<'_>) -> bool {
    packet.icmp_type().is_some_and(icmpv4::is_error)
}
