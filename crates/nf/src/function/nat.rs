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
mod lifetime;
mod log;
mod mapping;
pub mod pool;
mod ports;
mod rules;
mod session;
mod shard;
mod shared;
mod silence;
mod syn;
#[cfg(test)]
mod tests;

pub use config::{Filtering, Forward, Mapping, NatConfig, NatTimeouts, Pooling};
pub use flow::FlowState;
pub use log::{MappingChange, MappingEvent, MappingLog};
pub use pool::{BlockError, Pool};
pub use session::Session;
pub use shard::NatShard;
pub use shared::{SharedNat, Sharing};

use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_ip::RateLimit;
use rheostat_run::Figures;
use rheostat_state::Quota;
use rheostat_steer::{PacketSet, Side, Translation};

use crate::cx::Cx;
use crate::function::{NetworkFunction, ShardInfo};
use crate::packet::Packet;
use crate::verdict::{Admission, Outcome, Verdict};
use flow::{Binding, Translated};
use lifetime::Lifetime;
use mapping::Mappings;
use ports::PortSets;
use rules::{Inbound, Outbound, Rules, prohibit};
use shard::{Counts, Permissions, SharedClasses};
use silence::Silence;

const TCP: u8 = 6;
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
            rules: Rules::new(config)?,
        })
    }

    /// What is to become of a new flow that a packet from inside opens.
    fn first_outbound(
        &self,
        cx: &mut Cx<'_, NatShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        let (inner, remote, flags, turns_round) = match self.rules.outbound(packet) {
            Outbound::Pass(_) => return Ok(self.pass(cx, packet)),
            Outbound::Refuse(reason) => return Ok(Admission::Refuse(reason)),
            Outbound::Open { inner, remote, flags, turns_round } => {
                (inner, remote, flags, turns_round)
            }
        };
        let (key, now) = (packet.key(), cx.now());
        let (shard, flows) = cx.local_and_flows();
        let (ends, binding) = match self.bind(shard, flows, &key, (inner, remote), now) {
            Ok(bound) => bound,
            Err(reason) => {
                if cx.local().answers.allow(now) {
                    prohibit(cx, packet)?;
                }
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
        let Inbound::Ask { external, remote, flags, opens, is_syn } = self.rules.inbound(packet)
        else {
            return self.pass(cx, packet);
        };
        let key = packet.key();
        let admitted = match opens {
            true => self.admit(cx.local(), &key, (external, remote)),
            false => None,
        };
        let Some((ends, binding)) = admitted else {
            let now = cx.now();
            if is_syn {
                cx.local().silence.note(packet, now);
            }
            return Admission::Refuse(DropReason::NoMapping);
        };
        let turns_round = self.rules.external.contains(&remote.0);
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

    /// Lets a flow through as it is.
    fn pass(&self, cx: &mut Cx<'_, NatShard>, packet: &Packet<'_>) -> Admission<FlowState> {
        let mut state = FlowState::opened_by(packet, None);
        state.note(packet, packet.is_forward());
        cx.expire_in(self.lifetime(&state));
        Admission::Admit(state, Verdict::Forward)
    }

    #[inline]
    fn lifetime(&self, state: &FlowState) -> Duration {
        self.rules.config.timeouts.of(Lifetime::of(state.protocol, state.session))
    }
}

impl NetworkFunction for Nat {
    type State = FlowState;
    type Local = NatShard;

    fn packet_set(&self) -> PacketSet {
        PacketSet::five_tuple()
    }

    fn steering(&self) -> PacketSet {
        match self.rules.config.mapping {
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
        Some(self.rules.translation())
    }

    fn local(&self, shard: ShardInfo) -> NatShard {
        let classes = self.classes.get(&shard.steering);
        NatShard {
            id: shard.id,
            rng: NatShard::rng(shard.seed),
            sets: PortSets::new(self.rules.pool.len(), classes.largest()),
            classes,
            steering: shard.steering,
            mappings: Mappings::default(),
            permissions: Permissions::default(),
            answers: RateLimit::new(
                self.rules.config.answers_per_second,
                self.rules.config.answers_per_second,
            ),
            silence: Silence::new(self.rules.config.silence),
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
        Ok(self.rules.without_flow(packet.headers()))
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
