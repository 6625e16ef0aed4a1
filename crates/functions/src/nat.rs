//! Address and port translation of IPv4 (NAPT), without state shared between lanes.
//!
//! Packets from inside carry a flow's inner endpoint, those from outside the external one. Both are to reach
//! the same shard, so the NAT gives out external ports by *class* (see [`PortClasses`]): those under
//! which packets from outside are placed in the shard where the flow is. Each external endpoint can
//! only ever be given out by one shard, or only for one remote endpoint, so shards need not agree
//! about anything.
//!
//! What it does is what RFC 4787, 5382, 5508, 6888 and 7857 ask for; `docs/nat.md` has the table. IPv6
//! passes as it is.
//!
//! [`PortClasses`]: rheostat_steer::PortClasses

mod bind;
mod choice;
mod closing;
mod config;
mod crowd;
mod flow;
mod forwards;
mod lifetime;
mod listing;
mod log;
mod mapped;
mod mapping;
mod mapping_lines;
mod occupancy;
mod own;
pub mod pool;
mod ports;
mod rank_set;
mod registration;
mod release;
mod rules;
mod session;
mod settings;
mod shard;
mod shared;
mod shortage;
mod silence;
mod steady;
mod supply;
mod syn;
#[cfg(test)]
mod tests;
mod usage;
mod waiting;

pub use config::{Filtering, Forward, Mapping, NatConfig, NatTimeouts, Pooling};
pub use flow::FlowState;
pub use log::{MappingChange, MappingEvent, MappingLog};
#[doc(hidden)]
pub use occupancy::{NewFlow, Occupancy};
pub use pool::{BlockError, Pool};
pub use registration::NAT;
pub use session::Session;
pub use settings::NatFunction;
pub use shard::NatShard;
pub use shared::{RunningSharedNat, SharedNat, Sharing};
pub use usage::PortUsage;

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Counter, DropReason};
use rheostat_ip::RunLimit;
use rheostat_packet::FlowKey;
use rheostat_run::Metrics;
use rheostat_state::{Gauges, Quota};
use rheostat_steer::{PacketSet, Side};

use bind::{Bound, Request};
use closing::Opening;
use flow::{Binding, Endpoint, Stage, Translated};
use lifetime::Lifetime;
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::Steady;
use rheostat_nf::registry::RuleCounters;
use rheostat_nf::{Admission, Ending, Outcome, Verdict};
use rheostat_nf::{FunctionSpec, NetworkFunction, Prefetch};
use rules::{Inbound, Outbound, Rules, prohibit};
use shard::{Counts, SharedClasses};
use steady::SettledFlows;

const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The NAT.
#[derive(Debug)]
pub struct Nat {
    rules: Rules,
    quota: Option<Quota>,
    classes: SharedClasses,
    log: Option<MappingLog>,
    usage: Option<PortUsage>,
    errors: RunLimit,
    /// One value: mappings of all shards that have lost their port to others and still have flows. Of a shard's own, the lane
    /// that has the shard sees each: it has counted them, or got the shard from the lane that did.
    dispossessed: Gauges,
}

/// What a NAT goes on with that takes the place of another.
#[derive(Debug)]
pub struct RunningNat {
    quota: Option<Quota>,
    classes: SharedClasses,
    usage: Option<PortUsage>,
    dispossessed: Gauges,
}

impl Nat {
    /// A NAT with these settings, which writes to `log` if there is one.
    ///
    /// # Errors
    /// [`BlockError`] when the ports cannot be divided among the hosts inside.
    pub fn new(config: NatConfig, log: Option<MappingLog>) -> Result<Nat, BlockError> {
        Ok(Nat {
            quota: config.quota.map(Quota::new),
            classes: SharedClasses::default(),
            log,
            usage: None,
            errors: RunLimit::unlimited(),
            dispossessed: Gauges::new(1),
            rules: Rules::new(config)?,
        })
    }

    /// A NAT with these settings that takes the place of `running`, and goes on with its ports, mappings and quotas. No key may
    /// be different of those that [`NatFunction`] names as fixed.
    ///
    /// # Errors
    /// As [`Nat::new`].
    pub fn next(
        config: NatConfig,
        log: Option<MappingLog>,
        running: &RunningNat,
    ) -> Result<Nat, BlockError> {
        let nat = Nat::new(config, log)?;
        let limit = nat.rules.config.quota;
        let counted = running.quota.as_ref().zip(limit);
        Ok(Nat {
            quota: counted.map(|(quota, limit)| quota.limited_to(limit)).or(nat.quota),
            classes: running.classes.clone(),
            usage: running.usage.clone(),
            dispossessed: running.dispossessed.clone(),
            ..nat
        })
    }

    /// Where it publishes how many ports are in use.
    pub fn usage(&self) -> Option<&PortUsage> {
        self.usage.as_ref()
    }

    /// What a NAT that takes this one's place goes on with.
    pub fn running(&self) -> RunningNat {
        RunningNat {
            quota: self.quota.clone(),
            classes: self.classes.clone(),
            usage: self.usage.clone(),
            dispossessed: self.dispossessed.clone(),
        }
    }

    /// The same under a limit of errors that holds for the whole run, beside that of each shard.
    #[must_use]
    pub fn limited_by(self, errors: RunLimit) -> Nat {
        Nat { errors, ..self }
    }

    /// The same NAT, which publishes how many ports are in use.
    #[must_use]
    pub fn with_usage(self, usage: PortUsage) -> Nat {
        Nat { usage: Some(usage), ..self }
    }

    /// Counts a flow of a fixed endpoint.
    fn count_forward(
        &self,
        cx: &Cx<'_, NatShard>,
        packet: &Packet<'_>,
        binding: Binding,
        external: Endpoint,
    ) {
        let forwards = &self.rules.forwards;
        let place = || forwards.place(packet.headers().protocol, external);
        if binding == Binding::Fixed
            && let Some(place) = place()
        {
            forwards.count(place, cx.shard_id(), packet.len(), cx.now());
        }
    }

    /// How often each forward has opened a flow.
    pub fn forward_counters(&self) -> Arc<RuleCounters> {
        self.rules.forwards.counters()
    }

    /// What is to become of a new flow that a packet from inside opens.
    fn first_outbound(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        let (inner, remote, is_hairpin) = match self.rules.outbound(packet) {
            Outbound::Pass(_) => return Ok(self.pass(cx, packet)),
            Outbound::Refuse(reason) => return Ok(Admission::Refuse(reason)),
            Outbound::Open { inner, remote, is_hairpin, .. } => (inner, remote, is_hairpin),
        };
        let (key, now) = (packet.key(), cx.now());
        let (shard, flows) = cx.shard_and_flows();
        let request = Request { key, inner, remote, opening: opening(packet), now };
        let bound = match self.bind(shard, flows, &request) {
            Ok(bound) => bound,
            Err(reason) => {
                if cx.shard().answers.allow(now) {
                    prohibit(cx, packet)?;
                }
                return Ok(Admission::Refuse(reason));
            }
        };
        let Bound { ends, binding, mapping, displaced } = bound;
        if let Some(displaced) = displaced {
            cx.displace(displaced);
        }
        self.count_forward(cx, packet, binding, ends.external);
        let translated = Translated { ends, binding, is_hairpin, mapping };
        let mut state = FlowState::opened_by(packet, Some(translated));
        if let Err(reason) = ends.translate(packet, true) {
            let whose = (key.protocol(), key.zone());
            self.release(cx.shard(), whose, (translated, Stage::Waiting), now, false);
            return Ok(Admission::Refuse(reason));
        }
        state.note(packet, true);
        cx.shard().counts.hairpinned += u64::from(is_hairpin);
        let external_key = ends.external_key(key.protocol(), key.zone());
        cx.shard().silence.forget(&external_key, now);
        cx.alias(external_key);
        cx.set_evictable(true);
        cx.expire_in(self.lifetime(&state));
        Ok(Admission::Admit(state, if is_hairpin { Verdict::Hairpin } else { Verdict::Forward }))
    }

    /// What is to become of a new flow that a packet from outside opens.
    fn first_inbound(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Admission<FlowState> {
        let Inbound::Ask { external, remote, opens, is_syn, .. } = self.rules.inbound(packet)
        else {
            return self.pass(cx, packet);
        };
        let key = packet.key();
        let admitted = match opens {
            true => self.admit(cx.shard(), &key, (external, remote)),
            false => None,
        };
        let Some((ends, binding, mapping)) = admitted else {
            let now = cx.now();
            if is_syn {
                cx.shard().silence.note(packet, now);
            }
            return Admission::Refuse(DropReason::NoMapping);
        };
        self.count_forward(cx, packet, binding, ends.external);
        let is_hairpin = self.rules.is_external(remote.0);
        let translated = Translated { ends, binding, is_hairpin, mapping };
        let mut state = FlowState::opened_by(packet, Some(translated));
        if let Err(reason) = ends.translate(packet, false) {
            let (now, whose) = (cx.now(), (key.protocol(), key.zone()));
            self.release(cx.shard(), whose, (translated, Stage::Waiting), now, false);
            return Admission::Refuse(reason);
        }
        state.note(packet, false);
        let inner_key = ends.inner_key(key.protocol(), key.zone());
        let (&mut NatShard { place, .. }, flows) = cx.shard_and_flows();
        // A connection of the inner endpoint over a port that another mapping has got since.
        if let Some(former) = self.displaceable(place, flows, &inner_key) {
            cx.displace(former);
        }
        cx.alias(inner_key);
        cx.set_evictable(true);
        cx.expire_in(self.lifetime(&state));
        Admission::Admit(state, Verdict::Forward)
    }

    /// Lets a flow through as it is.
    fn pass(&self, cx: &mut Cx<'_, NatShard>, packet: &Packet<'_>) -> Admission<FlowState> {
        let mut state = FlowState::opened_by(packet, None);
        state.note(packet, packet.is_forward());
        cx.expire_in(self.lifetime(&state));
        Admission::Admit(state, Verdict::Forward)
    }

    /// What comes of a packet of a flow that is not answered or that is over, if that is settled before it is
    /// noted: another mapping may have got the flow's port, and a SYN may open another connection.
    #[cold]
    fn resume(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Verdict> {
        let (outbound, translated) = (packet.is_forward(), state.translated.as_mut()?);
        let has_lost_port = self.has_lost_port(cx.shard(), translated);
        if translated.binding == Binding::Asked && !has_lost_port {
            if outbound {
                self.keep(cx.shard(), translated);
            } else if !self.is_kept(cx.shard(), translated.mapping) {
                cx.close();
                return Some(Verdict::Drop(DropReason::NoMapping));
            }
            return None;
        }
        let opening = opening(packet);
        let goes_on = match state.stage {
            // What was under way, and what a host sends that has not seen the last of it.
            Stage::Closed if opening.is_none() => !has_lost_port || state.session.is_closed(),
            // The endpoint inside uses its port again: as it may with this remote endpoint, or not yet.
            Stage::Closed if outbound => {
                !has_lost_port
                    && opening.is_some_and(|opening| state.closing.is_outlived_by(opening))
                    && !self.is_quota_used_up(translated.ends.inner.0)
            }
            _ => !has_lost_port,
        };
        match goes_on {
            true => None,
            false if outbound => Some(Verdict::Restart),
            false => {
                cx.close();
                Some(Verdict::Drop(DropReason::NoMapping))
            }
        }
    }

    /// Takes back what a flow has, which ends.
    fn give_up(&self, cx: &mut Cx<'_, NatShard>, state: &FlowState, zone: u32, is_expired: bool) {
        let Some(translated) = state.translated else { return };
        let (now, has_rested) = (cx.now(), is_expired && state.stage == Stage::Closed);
        let (whose, flow) = ((state.protocol, zone), (translated, state.stage));
        self.release(cx.shard(), whose, flow, now, has_rested);
    }

    #[inline]
    fn lifetime(&self, state: &FlowState) -> Duration {
        self.rules.config.timeouts.of(Lifetime::of(state.protocol, state.session))
    }
}

/// The SYN that a packet is.
fn opening(packet: &Packet<'_>) -> Option<Opening> {
    packet.tcp().and_then(|segment| Opening::of(&segment))
}

impl NetworkFunction for Nat {
    type Flow = FlowState;
    type Shard = NatShard;

    fn spec(&self) -> FunctionSpec {
        let steering = match self.rules.config.mapping {
            Mapping::EndpointIndependent => PacketSet::inner_endpoint(),
            Mapping::AddressAndPortDependent => PacketSet::five_tuple(),
        };
        FunctionSpec {
            steering: Some(steering),
            aliases: true,
            translation: Some(self.rules.translation()),
            // Mappings live as long as their flows.
            depends_on_flows: true,
            decides_lifetime: true,
            ..FunctionSpec::five_tuple()
        }
    }

    fn first(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        if packet.is_later_fragment() {
            // The first fragment was refused, or its flow is over.
            return Ok(Admission::Refuse(DropReason::NoMapping));
        }
        match packet.side() {
            Side::Inside => self.first_outbound(cx, packet),
            Side::Outside => Ok(self.first_inbound(cx, packet)),
        }
    }

    #[inline]
    fn packet(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Verdict> {
        let outbound = packet.is_forward();
        let Some(translated) = &mut state.translated else {
            if !packet.is_icmp_error() {
                // Its lifetime holds for the functions before and behind, too: a connection that is let
                // through as it is may be silent as long as one that is translated.
                state.note(packet, outbound);
                cx.expire_in(self.lifetime(state));
            }
            return Ok(Verdict::Forward);
        };
        let onward = match outbound && translated.is_hairpin {
            true => Verdict::Hairpin,
            false => Verdict::Forward,
        };
        if !translated.ends.are_named_by(&packet.arrival_key(), outbound) {
            return Ok(Verdict::Drop(DropReason::NoMapping));
        }
        if packet.is_icmp_error() {
            // It neither refreshes nor ends the flow: it can be forged (RFC 5508, REQ-6).
            return Ok(match translated.ends.translate_error(packet, outbound) {
                Ok(()) => onward,
                Err(reason) => Verdict::Drop(reason),
            });
        }
        let ends = translated.ends;
        if state.stage != Stage::Firm
            && let Some(verdict) = self.resume(cx, packet, state)
        {
            return Ok(verdict);
        }
        // Of what comes from outside, only what TCP shows to be wanted (RFC 4787, REQ-6).
        let refreshes = state.note(packet, outbound) || outbound;
        let stage = state.stage_after(outbound);
        if stage != state.stage {
            self.turn(cx.shard(), packet.arrival_key().zone(), state, stage);
            // What is over gives way to others, in the table as with its port.
            cx.set_evictable(stage != Stage::Firm);
        }
        if let Err(reason) = ends.translate(packet, outbound) {
            return Ok(Verdict::Drop(reason));
        }
        if refreshes {
            cx.expire_in(self.lifetime(state));
        }
        Ok(onward)
    }

    #[inline(always)]
    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<FlowState> {
        SettledFlows::of(self)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, NatShard>,
        key: &FlowKey,
        state: &mut FlowState,
        why: Ending,
    ) -> Outcome<()> {
        self.give_up(cx, state, key.zone(), why == Ending::Expired);
        Ok(())
    }

    #[inline]
    fn prefetch(&self, stage: Prefetch<'_, Nat>) {
        if let Prefetch::End(shard, FlowState { protocol, translated: Some(translated), .. }) =
            stage
        {
            self.prefetch_release(shard, *protocol, translated);
        }
    }

    fn discarded(&self, cx: &mut Cx<'_, NatShard>, state: FlowState) {
        let zone = cx.shard().zone;
        self.give_up(cx, &state, zone, false);
    }

    fn non_flow(&self, _: &mut Cx<'_, NatShard>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        Ok(self.rules.without_flow(packet.headers()))
    }

    fn periodic(&self, cx: &mut Cx<'_, NatShard>) -> Outcome<()> {
        if let NatShard { sets, crowds, usage: Some(usage), .. } = cx.shard() {
            usage.publish(sets, crowds);
        }
        silence::answer_unsolicited(cx)
    }

    fn metrics(&self, shard: &NatShard, metrics: &mut Metrics) {
        let Counts { created, ended, preserved, reused, taken, hairpinned, log_lost } =
            shard.counts;
        if let Some(usage) = &shard.usage {
            // The last word: the shard has had its last regular turn.
            usage.clone().publish(&shard.sets, &shard.crowds);
        }
        metrics.add("endpoints_created", created);
        metrics.add("endpoints_ended", ended);
        metrics.add("ports_preserved", preserved);
        metrics.add("ports_in_use", shard.sets.in_use().map(|(_, in_use)| in_use as u64).sum());
        metrics.add("ports_reused", reused);
        metrics.add("ports_taken", taken);
        metrics.add("flows_hairpinned", hairpinned);
        metrics.add("log_lost", log_lost);
    }
}
