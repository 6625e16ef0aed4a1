//! A stateful firewall: rules decide about new flows, and what belongs to a flow that was let through
//! is let through in both directions. TCP is tracked through its states and windows; UDP, ICMP queries
//! and other protocols by their endpoints; ICMP errors by the packet they quote.
//!
//! It is transparent: addresses, ports and link headers stay as they are.

pub mod connection;
pub mod lifetimes;
mod limits;
mod listing;
mod registration;
mod rule_names;
pub mod rule_set;
pub mod settings;
mod steady;

pub use connection::TcpOptions;
pub use lifetimes::Timeouts;
pub use limits::Limits;
pub use registration::FIREWALL;
pub use rule_set::{
    Action, Decision, PortList, PortRange, Protocol, Question, Rule, RuleSet, RuleTextError,
};

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Counter, DropReason};
use rheostat_ip::{Received, RunLimit, Unreachable};
use rheostat_packet::wire::tcp_option::TcpOption;
use rheostat_packet::wire::{icmpv4, icmpv6};
use rheostat_packet::{FlowKey, Network};

use connection::{Phase, Segment, TcpVerdict, Track};
use rheostat_nf::Cx;
use rheostat_nf::NetworkFunction;
use rheostat_nf::Packet;
use rheostat_nf::Steady;
use rheostat_nf::registry::RuleCounters;
use rheostat_nf::{Admission, Ending, FunctionSpec, Outcome, Verdict};
use steady::OpenFlows;

/// The settings of a firewall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirewallConfig {
    /// What is held against new flows.
    pub rules: RuleSet,
    /// How strictly TCP segments are judged.
    pub tcp: TcpOptions,
    /// How long flows live without a packet.
    pub timeouts: Timeouts,
    /// Half-open TCP connections each shard tracks at most.
    pub half_open_per_shard: u32,
    /// Ethertypes besides IP that are let through.
    pub ethertypes: Vec<u16>,
    /// Resets and ICMP errors each shard sends per second at most.
    pub rejects_per_second: u32,
}

impl Default for FirewallConfig {
    fn default() -> FirewallConfig {
        FirewallConfig {
            rules: RuleSet::default(),
            tcp: TcpOptions::default(),
            timeouts: Timeouts::default(),
            half_open_per_shard: 512,
            ethertypes: vec![0x0806],
            rejects_per_second: 100,
        }
    }
}

/// The firewall.
#[derive(Clone, Debug)]
pub struct Firewall {
    config: FirewallConfig,
    errors: RunLimit,
    /// Counts of the rules, and of the defaults behind them.
    counters: Arc<RuleCounters>,
}

impl Firewall {
    /// A firewall with these settings.
    pub fn new(config: FirewallConfig) -> Firewall {
        let counters = Arc::new(RuleCounters::new(config.rules.named()));
        Firewall { config, errors: RunLimit::unlimited(), counters }
    }

    /// The same with counters that go on with those of `earlier`, for the rules that are the same.
    #[must_use]
    pub fn counting_after(self, earlier: Option<&RuleCounters>) -> Firewall {
        let counters = Arc::new(RuleCounters::after(earlier, self.config.rules.named()));
        Firewall { counters, ..self }
    }

    /// How often each rule has decided: the rules in order, and the defaults for both sides behind them.
    pub fn rule_counters(&self) -> Arc<RuleCounters> {
        self.counters.clone()
    }

    /// The same under a limit of errors and resets that holds for the whole run, beside that of each shard.
    #[must_use]
    pub fn limited_by(self, errors: RunLimit) -> Firewall {
        Firewall { errors, ..self }
    }

    /// Lets a new flow in, or says why not.
    fn admit(&self, cx: &mut Cx<'_, Limits>, packet: &Packet<'_>) -> Admission<Track> {
        let mut state = Track::without_connection(packet.is_forward());
        let protocol = packet.headers().protocol;
        if protocol == 6 {
            let opened = packet.tcp().and_then(|segment| {
                let forward = packet.is_forward();
                Track::open(&read(packet, &segment), self.config.tcp, forward)
            });
            let Some(track) = opened else { return Admission::Refuse(DropReason::TcpInvalid) };
            if track.is_half_open() {
                if !cx.shard().open_half(self.config.half_open_per_shard) {
                    return Admission::Refuse(DropReason::HalfOpenLimit);
                }
                cx.set_evictable(true);
            }
            state = track;
        } else if let Some(kind) = packet.icmp_type() {
            let asks = match packet.headers().network {
                Network::Ipv4 => icmpv4::is_request(kind),
                _ => icmpv6::is_request(kind),
            };
            if !asks {
                return Admission::Refuse(DropReason::IcmpUnrelated);
            }
        }
        cx.expire_in(self.lifetime(&state, protocol));
        Admission::Admit(state, Verdict::Forward)
    }

    #[inline]
    fn lifetime(&self, state: &Track, protocol: u8) -> Duration {
        let timeouts = &self.config.timeouts;
        match (state.phase(), protocol) {
            (Phase::Answered, 17 | 136) => timeouts.udp,
            (Phase::Asked, 17 | 136) => timeouts.udp_unanswered,
            (Phase::Asked | Phase::Answered, 1 | 58) => timeouts.icmp,
            (Phase::Asked | Phase::Answered, _) => timeouts.other,
            // Half closed, a connection may be silent as long as an open one: the end that has closed waits for the other
            // (RFC 7857, 2, after RFC 6146, 3.5.2.2).
            (Phase::Established | Phase::Closing, _) => timeouts.tcp_established,
            (Phase::Closed, _) => timeouts.tcp_closed,
            _ => timeouts.tcp_transitory,
        }
    }

    /// Tells the sender of a packet that is not let through, as often as the shard may.
    fn reject(&self, cx: &mut Cx<'_, Limits>, packet: &Packet<'_>) -> Outcome<()> {
        let now = cx.now();
        if !cx.shard().may_answer(now) {
            return Ok(());
        }
        let (received, headers) = (Received::from(packet.mbuf()), packet.headers());
        let capacity = if headers.protocol == 6 { 256 } else { rheostat_ip::LONGEST_ANSWER };
        cx.originate_like(packet, capacity, |out| match headers.protocol {
            6 => rheostat_ip::tcp_reset(received, headers, out),
            _ => rheostat_ip::unreachable(received, headers, Unreachable::Prohibited, out),
        })
    }
}

impl NetworkFunction for Firewall {
    type Flow = Track;
    type Shard = Limits;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { decides_lifetime: true, ..FunctionSpec::five_tuple() }
    }

    fn first(&self, cx: &mut Cx<'_, Limits>, packet: &mut Packet<'_>) -> Outcome<Admission<Track>> {
        if packet.is_later_fragment() {
            // The first fragment was refused, or its flow is over.
            return Ok(Admission::Refuse(DropReason::Denied));
        }
        let Decision { rule, action } = self.config.rules.evaluate(&question(packet));
        self.counters.count(rule, cx.shard_id(), packet.len(), cx.now());
        match action {
            Action::Allow => Ok(self.admit(cx, packet)),
            Action::Deny => Ok(Admission::Refuse(DropReason::Denied)),
            Action::Reject => {
                self.reject(cx, packet)?;
                Ok(Admission::Refuse(DropReason::Denied))
            }
        }
    }

    #[inline]
    fn packet(
        &self,
        cx: &mut Cx<'_, Limits>,
        packet: &mut Packet<'_>,
        state: &mut Track,
    ) -> Outcome<Verdict> {
        if packet.is_icmp_error() {
            // It belongs to the flow, but it neither refreshes nor ends it: it can be forged.
            return Ok(match goes_to_sender(packet) {
                true => Verdict::Forward,
                false => Verdict::Drop(DropReason::IcmpUnrelated),
            });
        }
        let from_opener = state.is_from_initiator(packet.is_forward());
        if !state.is_connection() {
            state.note(from_opener);
        } else if let Some(segment) = packet.tcp() {
            let was_half_open = state.is_half_open();
            match state.segment(from_opener, &read(packet, &segment), self.config.tcp) {
                TcpVerdict::Pass => {}
                TcpVerdict::Drop => return Ok(Verdict::Drop(DropReason::TcpInvalid)),
                TcpVerdict::Restart => return Ok(Verdict::Restart),
            }
            if was_half_open && !state.is_half_open() {
                cx.shard().close_half();
                cx.set_evictable(false);
            }
        } else if !packet.is_later_fragment() {
            return Ok(Verdict::Drop(DropReason::Malformed));
        }
        cx.expire_in(self.lifetime(state, packet.headers().protocol));
        Ok(Verdict::Forward)
    }

    #[inline(always)]
    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<Track> {
        OpenFlows::of(self)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, Limits>,
        _: &FlowKey,
        state: &mut Track,
        _: Ending,
    ) -> Outcome<()> {
        if state.is_half_open() {
            cx.shard().close_half();
        }
        Ok(())
    }

    fn discarded(&self, cx: &mut Cx<'_, Limits>, state: Track) {
        if state.is_half_open() {
            cx.shard().close_half();
        }
    }

    fn non_flow(&self, _: &mut Cx<'_, Limits>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let headers = packet.headers();
        Ok(match headers.network {
            Network::Ipv4 => Verdict::Drop(DropReason::IcmpUnrelated),
            Network::Ipv6 => match packet.icmp_type() {
                Some(kind) if icmpv6::is_link_local(kind) => Verdict::Forward,
                _ => Verdict::Drop(DropReason::IcmpUnrelated),
            },
            Network::Arp | Network::Other => {
                let known = self.config.ethertypes.contains(&headers.ethertype);
                if known { Verdict::Forward } else { Verdict::Drop(DropReason::NotIp) }
            }
        })
    }
}

/// What the rules are asked about a flow's first packet.
fn question(packet: &Packet<'_>) -> Question {
    let key = match packet.is_forward() {
        true => packet.key(),
        false => packet.key().reversed(),
    };
    let protocol = key.protocol();
    let has_ports = rheostat_packet::wire::protocol::has_ports(protocol);
    Question {
        from: packet.side(),
        device: packet.device(),
        source: key.first(),
        destination: key.second(),
        protocol,
        ports: has_ports.then(|| (key.first_port(), key.second_port())),
        icmp_type: packet.icmp_type(),
    }
}

/// Whether an ICMP error goes to the host that sent the packet it quotes (RFC 792; RFC 4443, 3.1).
/// Otherwise one flow would let errors through to every other host.
fn goes_to_sender(packet: &Packet<'_>) -> bool {
    let key = packet.key();
    let sender = if packet.is_forward() { key.second() } else { key.first() };
    packet.addresses().is_some_and(|outer| outer.second() == sender)
}

/// What connection tracking needs of a segment.
#[inline]
fn read(packet: &Packet<'_>, segment: &rheostat_packet::wire::TcpSegment<'_>) -> Segment {
    let flags = segment.flags().0;
    let scale = || {
        segment.options().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(shift),
            _ => None,
        })
    };
    Segment {
        seq: segment.seq(),
        ack: segment.ack(),
        flags,
        window: segment.window(),
        len: packet.payload_len(segment.header_len()) as u32,
        scale: if flags & connection::SYN != 0 { scale() } else { None },
    }
}
