//! A detector of attacks that open flows and send nothing more: most flows have one packet then. It lets everything
//! through, or keeps new flows out while there are too many of that kind.
//!
//! After Anti-DDoS in NFOS (section 4.8, listing 2), which took it from NFF-Go. The two counts are one distributed
//! object: each lane changes its own part, and a flow's first packet reads all parts together, or what was read up to
//! `staleness` ago.

mod alarm_rule;
pub mod flow_counts;
mod listing;
mod registration;
mod settings;

pub use flow_counts::{Alarm, FlowCounts};
pub use registration::ANTIDDOS;

use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::DropReason;
use rheostat_run::Metrics;
use rheostat_state::object::{Distributed, Recipe};
use rheostat_state::txn::Objects;
use rheostat_steer::{PacketSet, Protocols, Side};

use rheostat_nf::Cx;
use rheostat_nf::NetworkFunction;
use rheostat_nf::Packet;
use rheostat_nf::{Admission, Ending, FunctionSpec, Outcome, Verdict};
use rheostat_packet::FlowKey;

/// The settings of the detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AntiDdosConfig {
    /// What counts as an attack.
    pub alarm: Alarm,
    /// How old the counts may be by which a new flow is evaluated; zero for those of this moment.
    pub staleness: Duration,
    /// The side whose flows count. Without it, those of both do.
    pub from: Option<Side>,
    /// Whether flows of UDP count, beside those of TCP.
    pub udp: bool,
    /// What becomes of new flows during an attack.
    pub action: Action,
    /// How long a flow lives after its first packet, if no other comes.
    pub one_packet: Duration,
    /// How long it lives after any other.
    pub idle: Duration,
}

/// What becomes of new flows during an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// They are counted, and pass.
    #[default]
    Count,
    /// They are dropped. Flows that were there before go on.
    Drop,
}

impl Default for AntiDdosConfig {
    /// The paper's share and staleness, once there are a thousand flows.
    fn default() -> AntiDdosConfig {
        AntiDdosConfig {
            alarm: Alarm { permille: 800, least: 1_000 },
            staleness: Duration::from_micros(100),
            from: None,
            udp: false,
            action: Action::default(),
            one_packet: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// The detector.
#[derive(Clone, Debug)]
pub struct AntiDdos {
    config: AntiDdosConfig,
    flow_counts: Distributed<FlowCounts>,
    counts: Distributed<Counts>,
}

/// What the detector remembers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowState {
    /// The direction of its first packet.
    opened_forward: bool,
    /// Whether no other has come that way.
    has_one_packet: bool,
}

/// What the detector counts for the summary. Nothing is decided by it.
#[derive(Clone, Copy, Debug, Default, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Counts {
    /// Flows that were let in.
    opened: u64,
    /// New flows during an attack, and those of them that were dropped.
    alarmed: u64,
    dropped: u64,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.opened += other.opened;
        self.alarmed += other.alarmed;
        self.dropped += other.dropped;
    }
}

impl AntiDdos {
    /// A detector with these settings.
    pub fn new(config: AntiDdosConfig, objects: &Objects) -> AntiDdos {
        let flow_counts = Distributed::new(
            objects,
            "antiddos flows",
            FlowCounts::default(),
            FlowCounts::merge,
            config.staleness,
        );
        objects.set_by(flow_counts.id(), Recipe::RaiseStaleness, "[function.antiddos] staleness");
        let (zero, merge) = (Counts::default(), Counts::merge);
        let counts = Distributed::new(objects, "antiddos counts", zero, merge, Duration::ZERO);
        AntiDdos { config, flow_counts, counts }
    }

    /// A detector with these settings that takes the place of `running`, with its counts.
    pub fn next(config: AntiDdosConfig, running: &AntiDdos) -> AntiDdos {
        let AntiDdos { flow_counts, counts, .. } = running.clone();
        AntiDdos { flow_counts: flow_counts.read_within(config.staleness), counts, config }
    }

    /// Whether there is an attack now.
    fn is_alarmed(&self, cx: &mut Cx<'_, ()>) -> Outcome<bool> {
        Ok(self.config.alarm.is_raised_by(self.flow_counts.read(cx)?))
    }

    /// Takes a flow out of the count.
    fn leave(&self, cx: &mut Cx<'_, ()>, state: &FlowState) -> Outcome<()> {
        self.flow_counts.update(cx, |flow_counts| {
            flow_counts.flows -= 1;
            flow_counts.one_packet -= i64::from(state.has_one_packet);
        })
    }
}

impl NetworkFunction for AntiDdos {
    type Flow = FlowState;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        let protocols = if self.config.udp { Protocols::TCP_UDP } else { Protocols::TCP };
        FunctionSpec {
            passes_without_entry: true,
            ..FunctionSpec::named_by(PacketSet::five_tuple().only(protocols))
        }
    }

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<FlowState>> {
        if self.config.from.is_some_and(|side| side != packet.side()) {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        if self.config.action == Action::Drop && self.is_alarmed(cx)? {
            // It has no entry whose end would take it out of the count again.
            self.counts.update(cx, |counts| {
                counts.alarmed += 1;
                counts.dropped += 1;
            })?;
            return Ok(Admission::Refuse(DropReason::UnderAttack));
        }
        self.flow_counts.update(cx, |flow_counts| {
            flow_counts.flows += 1;
            flow_counts.one_packet += 1;
        })?;
        let alarmed = self.config.action == Action::Count && self.is_alarmed(cx)?;
        self.counts.update(cx, |counts| {
            counts.opened += 1;
            counts.alarmed += u64::from(alarmed);
        })?;
        cx.expire_in(self.config.one_packet);
        cx.set_evictable(true);
        let state = FlowState { opened_forward: packet.is_forward(), has_one_packet: true };
        Ok(Admission::Admit(state, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Verdict> {
        // What comes back is the victim's doing: it answers made-up senders, too.
        if packet.is_icmp_error() || packet.is_forward() != state.opened_forward {
            return Ok(Verdict::Forward);
        }
        if state.has_one_packet {
            state.has_one_packet = false;
            self.flow_counts.update(cx, |flow_counts| flow_counts.one_packet -= 1)?;
            cx.set_evictable(false);
        }
        cx.expire_in(self.config.idle);
        Ok(Verdict::Forward)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &FlowKey,
        state: &mut FlowState,
        _: Ending,
    ) -> Outcome<()> {
        self.leave(cx, state)
    }

    fn discarded(&self, cx: &mut Cx<'_, ()>, state: FlowState) {
        // A conflict has spoiled the transaction: it is begun anew, whatever is returned here.
        let _ = self.leave(cx, &state);
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        let (flow_counts, counts) = (self.flow_counts.total(), self.counts.total());
        for (name, count) in [
            ("antiddos_flows", flow_counts.flows.max(0) as u64),
            ("antiddos_one_packet_flows", flow_counts.one_packet.max(0) as u64),
            ("antiddos_opened", counts.opened),
            ("antiddos_alarms", counts.alarmed),
            ("antiddos_dropped", counts.dropped),
        ] {
            metrics.add(name, count);
        }
    }
}
