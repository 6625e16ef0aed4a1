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
mod config;
mod flow;
mod forwards;
mod log;
mod mapping;
pub mod pool;
mod ports;
mod session;
mod shard;
mod silence;
#[cfg(test)]
mod tests;

pub use config::{Filtering, Forward, Mapping, NatConfig, NatTimeouts, Pooling};
pub use flow::FlowState;
pub use log::{MappingChange, MappingEvent, MappingLog};
pub use pool::{BlockError, Pool};
pub use session::Session;
pub use shard::NatShard;

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_ip::{LONGEST_ANSWER, RateLimit, Received, Unreachable, is_host};
use rheostat_packet::wire::icmpv4;
use rheostat_packet::{FlowKey, Network};
use rheostat_run::Figures;
use rheostat_state::Quota;
use rheostat_steer::{PacketSet, Prefix, Side, Translation};

use crate::cx::Cx;
use crate::function::{NetworkFunction, ShardInfo};
use crate::packet::Packet;
use crate::verdict::{Admission, Outcome, Verdict};
use flow::{Binding, Endpoint, Translated};
use forwards::Forwards;
use mapping::Mappings;
use ports::PortSets;
use shard::{Classes, Counts, Permissions};
use silence::Silence;

const TCP: u8 = 6;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The NAT.
#[derive(Debug)]
pub struct Nat {
    config: NatConfig,
    pool: Pool,
    forwards: Forwards,
    quota: Option<Quota>,
    /// Made with the first shard, the same for all.
    classes: OnceLock<Arc<Classes>>,
    /// The addresses that packets from outside may be for.
    external: HashSet<Ipv4Addr>,
    log: Option<MappingLog>,
}

impl Nat {
    /// A NAT with these settings, which writes to `log` if there is one.
    ///
    /// # Errors
    /// [`BlockError`] when the ports cannot be divided among the hosts inside.
    pub fn new(config: NatConfig, log: Option<MappingLog>) -> Result<Nat, BlockError> {
        Ok(Nat {
            pool: Pool::new(&config)?,
            forwards: Forwards::new(&config.forwards),
            quota: config.quota.map(Quota::new),
            classes: OnceLock::new(),
            external: forwarded(&config).chain(config.external.iter().copied()).collect(),
            log,
            config,
        })
    }

    /// What is to become of a new flow that a packet from inside opens.
    fn first_outbound(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        let key = packet.key();
        let Some(ends @ (inner, remote)) = ends_v4(&key, packet.is_forward()) else {
            return Ok(self.pass(cx, packet));
        };
        // Nobody inside has an external address, or one that names no host.
        let is_spoofed = self.external.contains(&inner.0) || inner.0.is_loopback();
        if is_spoofed || !is_host(inner.0.into()) || !is_routable(remote.0) {
            return Ok(Admission::Refuse(DropReason::NoRoute));
        }
        if !self.translates(packet.is_forward(), ends) {
            return Ok(self.pass(cx, packet));
        }
        if let Some(kind) = packet.icmp_type()
            && !icmpv4::is_request(kind)
        {
            return Ok(Admission::Refuse(DropReason::IcmpUnrelated));
        }
        let flags = packet.tcp().map(|segment| segment.flags().0);
        if flags.is_some_and(|flags| flags & RST != 0) {
            // It ends what is not there.
            return Ok(Admission::Refuse(DropReason::TcpInvalid));
        }
        let turns_round = self.external.contains(&remote.0);
        if turns_round && !self.config.hairpinning {
            return Ok(Admission::Refuse(DropReason::NoRoute));
        }
        let now = cx.now();
        let (shard, flows) = cx.local_and_flows();
        let (ends, binding) = match self.bind(shard, flows, &key, (inner, remote), now) {
            Ok(bound) => bound,
            Err(reason) => {
                self.refuse(cx, packet)?;
                return Ok(Admission::Refuse(reason));
            }
        };
        let translated = Translated { ends, binding, turns_round };
        let mut state = FlowState::opened_by(packet, Some(translated));
        if let Err(reason) = ends.translate(packet, true) {
            self.release(cx.local(), key.protocol(), translated, now);
            return Ok(Admission::Refuse(reason));
        }
        if let Some(flags) = flags {
            state.session.note(true, flags);
        }
        cx.local().counts.hairpinned += u64::from(turns_round);
        let external_key = ends.external_key(key.protocol(), key.zone());
        cx.local().silence.forget(&external_key, now);
        cx.alias(external_key);
        cx.set_evictable(true);
        cx.expire_in(self.lifetime(&state));
        Ok(Admission::Admit(state, if turns_round { Verdict::TurnRound } else { Verdict::Forward }))
    }

    /// What is to become of a new flow that a packet from outside opens.
    fn first_inbound(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Admission<FlowState> {
        let key = packet.key();
        let (IpAddr::V4(external), IpAddr::V4(remote)) = (key.first(), key.second()) else {
            return self.pass(cx, packet);
        };
        if self.config.exempt.contains(remote.into()) && !self.external.contains(&external) {
            return self.pass(cx, packet);
        }
        let flags = packet.tcp().map(|segment| segment.flags().0);
        let opens = flags.is_none_or(|flags| flags & (SYN | ACK) == SYN);
        let asks = packet.icmp_type().is_none_or(icmpv4::is_request);
        let ends = ((external, key.first_port()), (remote, key.second_port()));
        let admitted = match opens && asks && !packet.is_forward() && is_host(remote.into()) {
            true => self.admit(cx.local(), &key, ends),
            false => None,
        };
        let Some((ends, binding)) = admitted else {
            let now = cx.now();
            if flags.is_some_and(|flags| flags & (SYN | ACK) == SYN)
                && self.external.contains(&external)
            {
                cx.local().silence.note(packet, now);
            }
            return Admission::Refuse(DropReason::NoMapping);
        };
        let turns_round = self.external.contains(&remote);
        let translated = Translated { ends, binding, turns_round };
        let mut state = FlowState::opened_by(packet, Some(translated));
        if let Err(reason) = ends.translate(packet, false) {
            let now = cx.now();
            self.release(cx.local(), key.protocol(), translated, now);
            return Admission::Refuse(reason);
        }
        if let Some(flags) = flags {
            state.session.note(false, flags);
        }
        cx.alias(ends.inner_key(key.protocol(), key.zone()));
        cx.set_evictable(true);
        cx.expire_in(self.lifetime(&state));
        Admission::Admit(state, Verdict::Forward)
    }

    /// Whether packets between these ends are translated.
    fn translates(&self, is_forward: bool, (inner, remote): (Endpoint, Endpoint)) -> bool {
        let inside = &self.config.inside;
        let is_inside = |address: Ipv4Addr| inside.contains(address.into());
        let by_host = inside.is_empty() || (is_inside(inner.0) && !is_inside(remote.0));
        is_forward && by_host && !self.config.exempt.contains(remote.0.into())
    }

    /// Lets a flow through as it is.
    fn pass(&self, cx: &mut Cx<'_, NatShard>, packet: &Packet<'_>) -> Admission<FlowState> {
        let mut state = FlowState::opened_by(packet, None);
        state.note(packet, packet.is_forward());
        cx.expire_in(self.lifetime(&state));
        Admission::Admit(state, Verdict::Forward)
    }

    /// Tells a host inside that there is no endpoint for its flow (RFC 6888, REQ-11).
    fn refuse(&self, cx: &mut Cx<'_, NatShard>, packet: &Packet<'_>) -> Outcome<()> {
        let now = cx.now();
        if !cx.local().answers.allow(now) {
            return Ok(());
        }
        let (received, headers) = (Received::from(packet.mbuf()), packet.headers());
        cx.originate_like(packet, LONGEST_ANSWER, |out| {
            rheostat_ip::unreachable(received, headers, Unreachable::Prohibited, out)
        })
    }

    #[inline]
    fn lifetime(&self, state: &FlowState) -> Duration {
        let timeouts = &self.config.timeouts;
        match state.protocol {
            TCP if state.session.is_established() => timeouts.tcp_established,
            TCP => timeouts.tcp_transitory,
            17 | 136 => timeouts.udp,
            1 | 58 => timeouts.icmp,
            _ => timeouts.other,
        }
    }
}

impl NetworkFunction for Nat {
    type State = FlowState;
    type Local = NatShard;

    fn packet_set(&self) -> PacketSet {
        PacketSet::five_tuple()
    }

    fn steering(&self) -> PacketSet {
        match self.config.mapping {
            Mapping::EndpointIndependent => PacketSet::inner_endpoint(),
            Mapping::AddressAndPortDependent => PacketSet::five_tuple(),
        }
    }

    fn aliases(&self) -> bool {
        true
    }

    /// Mappings live as long as their flows.
    fn depends_on_flows(&self) -> bool {
        true
    }

    fn translation(&self) -> Option<Translation> {
        let single = |address: &Ipv4Addr| Prefix::containing((*address).into(), 32);
        let external = self.external.iter().map(single).collect();
        let mut translation = Translation::new(external);
        for (protocol, inner, external) in self.forwards.iter() {
            translation.fix(protocol, inner, external);
        }
        Some(translation)
    }

    fn local(&self, shard: ShardInfo) -> NatShard {
        let classes = self.classes.get_or_init(|| Arc::new(Classes::new(&shard.steering)));
        NatShard {
            id: shard.id,
            classes: classes.clone(),
            rng: NatShard::rng(shard.seed),
            sets: PortSets::new(self.pool.len(), classes.largest()),
            steering: shard.steering,
            mappings: Mappings::default(),
            permissions: Permissions::default(),
            answers: RateLimit::new(self.config.answers_per_second, self.config.answers_per_second),
            silence: Silence::new(self.config.silence),
            log: self.log.as_ref().map(MappingLog::open),
            counts: Counts::default(),
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
        let onward = match outbound && translated.turns_round {
            true => Verdict::TurnRound,
            false => Verdict::Forward,
        };
        if !translated.ends.are_named_by(packet.arrival_key(), outbound) {
            return Ok(Verdict::Drop(DropReason::NoMapping));
        }
        if packet.is_icmp_error() {
            // It neither refreshes nor ends the flow: anyone can forge one (RFC 5508, REQ-6).
            return Ok(match translated.ends.translate_error(packet, outbound) {
                Ok(()) => onward,
                Err(reason) => Verdict::Drop(reason),
            });
        }
        if let Binding::Mapping { id, kept: false } = translated.binding {
            if outbound {
                self.keep(cx.local(), translated);
            } else if !self.is_kept(cx.local(), id) {
                cx.close();
                return Ok(Verdict::Drop(DropReason::NoMapping));
            }
        }
        let ends = translated.ends;
        // Of what comes from outside, only what TCP shows to be wanted (RFC 4787, REQ-6).
        let refreshes = state.note(packet, outbound) || outbound;
        if !state.answered && outbound != state.opened_inside {
            state.answered = true;
            cx.set_evictable(false);
        }
        if let Err(reason) = ends.translate(packet, outbound) {
            return Ok(Verdict::Drop(reason));
        }
        if refreshes {
            cx.expire_in(self.lifetime(state));
        }
        Ok(onward)
    }

    fn undo(&self, packet: &mut Packet<'_>, state: &mut FlowState) {
        if let Some(Translated { ends, .. }) = state.translated {
            ends.untranslate(packet, packet.is_forward());
        }
    }

    fn expired(&self, cx: &mut Cx<'_, NatShard>, state: &mut FlowState) -> Outcome<()> {
        if let Some(translated) = state.translated {
            let now = cx.now();
            self.release(cx.local(), state.protocol, translated, now);
        }
        Ok(())
    }

    fn discarded(&self, cx: &mut Cx<'_, NatShard>, mut state: FlowState) {
        // `expired` of this function cannot abort.
        let _ = self.expired(cx, &mut state);
    }

    fn orphan(&self, _: &mut Cx<'_, NatShard>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let headers = packet.headers();
        Ok(match headers.network {
            Network::Ipv4 => Verdict::Drop(DropReason::IcmpUnrelated),
            Network::Ipv6 => Verdict::Forward,
            Network::Arp | Network::Other => {
                let known = self.config.ethertypes.contains(&headers.ethertype);
                if known { Verdict::Forward } else { Verdict::Drop(DropReason::NotIp) }
            }
        })
    }

    fn periodic(&self, cx: &mut Cx<'_, NatShard>) -> Outcome<()> {
        silence::answer_unsolicited(cx)
    }

    fn figures(&self, shard: &NatShard, figures: &mut Figures) {
        let Counts { created, ended, preserved, hairpinned, log_lost } = shard.counts;
        figures.add("endpoints_created", created);
        figures.add("endpoints_ended", ended);
        figures.add("ports_preserved", preserved);
        figures.add("flows_hairpinned", hairpinned);
        figures.add("log_lost", log_lost);
    }
}

/// Sender and receiver of a packet from inside, if it is of IPv4.
fn ends_v4(key: &FlowKey, is_forward: bool) -> Option<(Endpoint, Endpoint)> {
    let (IpAddr::V4(first), IpAddr::V4(second)) = (key.first(), key.second()) else { return None };
    let (first, second) = ((first, key.first_port()), (second, key.second_port()));
    Some(if is_forward { (first, second) } else { (second, first) })
}

/// The external addresses of static forwards.
fn forwarded(config: &NatConfig) -> impl Iterator<Item = Ipv4Addr> {
    config.forwards.iter().map(|forward| forward.external.0)
}

/// Whether packets to an address leave their link (RFC 1812, section 5.3.7; RFC 3927, section 2.7).
fn is_routable(address: Ipv4Addr) -> bool {
    is_host(address.into()) && !address.is_loopback() && !address.is_link_local()
}
