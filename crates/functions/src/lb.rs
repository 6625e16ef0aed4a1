//! A layer-4 load balancer: clients outside talk to virtual addresses, backends inside serve them.
//!
//! A new flow gets its backend from the service's Maglev table and keeps it, whatever happens to the other
//! backends, until it ends or its backend is down. The table is the same on every instance with the same
//! configuration, so a flow whose state is elsewhere, forgotten or never fitted into the table of flows
//! still finds its backend as long as the backends have not changed.
//!
//! Packets reach their backend in a tunnel, and it answers the client directly; or with its address in
//! place of the service's, and answers come back through here.

mod answer;
pub mod check;
pub mod config;
mod delivery;
mod error;
pub mod health;
mod keyed_hash;
mod lifetime;
mod listing;
pub mod maglev;
mod numbering;
pub mod quic;
mod registration;
mod service_map;
mod service_rules;
mod settings;
pub mod shard;
mod steady;
mod tunnel;

pub use check::{CheckConfig, CheckKind, HealthChecks};
pub use config::{
    BackendConfig, LbConfig, Mode, OnDown, Other, ServiceConfig, Sides, Timeouts, TunnelConfig,
};
pub use health::{
    BackendUse, Health, HealthBoard, HealthChange, HealthError, HealthOrigin, UnknownBackend,
};
pub use numbering::NoNumbers;
pub use quic::{QuicRouting, ServerId};
pub use registration::LB;
pub use shard::LbShard;

use std::sync::Arc;

use rheostat_base::{Counter, DropReason};
use rheostat_ip::RunLimit;
use rheostat_packet::wire::{TcpFlags, protocol, udp};
use rheostat_packet::{Family, FlowKey, Network};
use rheostat_run::Metrics;
use rheostat_steer::{PacketSet, Side};

use health::Edition;
use keyed_hash::KeyedHash;
use lifetime::{Phase, Step};
use numbering::Numbering;
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::Steady;
use rheostat_nf::{Admission, Outcome, Verdict};
use rheostat_nf::{FunctionSpec, NetworkFunction};
use service_map::{Seat, ServiceMap};
use steady::OpenFlows;

/// How many backends are tried for a flow whose translated endpoints another flow has already.
const TRIES: usize = 64;

/// The load balancer.
#[derive(Debug)]
pub struct Lb {
    /// With services and backends by number.
    config: Arc<LbConfig>,
    map: ServiceMap,
    hash: KeyedHash,
    numbering: Numbering,
    board: Arc<HealthBoard>,
    /// The health of backends by these settings, which the board has once they are in force.
    edition: Arc<Edition>,
    errors: RunLimit,
}

/// What a load balancer goes on with that takes the place of another.
#[derive(Clone, Debug)]
pub struct RunningLb {
    numbering: Numbering,
    board: Arc<HealthBoard>,
}

/// What the load balancer remembers of a flow.
#[derive(Debug, Default)]
pub struct FlowState {
    hash: u64,
    seat: Seat,
    /// The service's port that the client talks to.
    port: u16,
    phase: Phase,
    /// The lower half of the number of the assignment by which the backend was last seen to take flows.
    checked: u32,
}

const _: () = assert!(size_of::<FlowState>() <= 24);

impl Lb {
    /// A load balancer with these settings.
    ///
    /// # Panics
    /// When the table size is no prime, or a service has more backends than a table can tell apart.
    pub fn new(config: LbConfig) -> Lb {
        let numbering = Numbering::first(config);
        let board = Arc::new(HealthBoard::new(numbering.clone()));
        let edition = board.edition();
        Lb::of(numbering, board, edition)
    }

    /// A load balancer with these settings that takes the place of `running`: services and backends that go on keep their flows
    /// and what was found out about their health, and those that are gone keep their flows until these end. The health board is
    /// that of `running`.
    ///
    /// # Errors
    /// [`NoNumbers`].
    ///
    /// # Panics
    /// As [`Lb::new`].
    pub fn next(config: LbConfig, running: &RunningLb) -> Result<Lb, NoNumbers> {
        let numbering = running.numbering.next(config)?;
        let edition = running.board.prepare(numbering.clone());
        Ok(Lb::of(numbering, running.board.clone(), edition))
    }

    fn of(numbering: Numbering, board: Arc<HealthBoard>, edition: Arc<Edition>) -> Lb {
        let config = numbering.config.clone();
        let (map, hash) = (ServiceMap::new(&numbering), KeyedHash::new(config.seed));
        Lb { config, map, hash, numbering, board, edition, errors: RunLimit::unlimited() }
    }

    /// What a load balancer that takes this one's place goes on with.
    pub fn running(&self) -> RunningLb {
        RunningLb { numbering: self.numbering.clone(), board: self.board.clone() }
    }

    /// The same under a limit of errors and resets that holds for the whole run, beside that of each shard.
    #[must_use]
    pub fn limited_by(self, errors: RunLimit) -> Lb {
        Lb { errors, ..self }
    }

    /// Where the health of the backends is changed while packets go through.
    pub fn board(&self) -> Arc<HealthBoard> {
        self.board.clone()
    }

    fn service(&self, number: u16) -> &ServiceConfig {
        &self.config.services[usize::from(number)]
    }

    fn backend(&self, seat: Seat) -> &BackendConfig {
        &self.service(seat.service).backends[usize::from(seat.backend)]
    }

    /// Gives a client's flow a backend.
    fn open(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        number: u16,
    ) -> Outcome<Admission<FlowState>> {
        let tcp = match flags(packet) {
            Ok(tcp) => tcp,
            Err(reason) => return Ok(Admission::Refuse(reason)),
        };
        let key = packet.key();
        let hash = self.hash.flow(&key);
        let Some(seat) = self.choose(cx, packet, number, &key, hash) else {
            cx.shard().counts.no_backend += 1;
            return Ok(Admission::Refuse(DropReason::NoBackend));
        };
        if self.service(number).mode == Mode::Nat {
            cx.alias(self.translated(&key, seat));
        }
        let state = FlowState {
            hash,
            seat,
            port: key.first_port(),
            phase: Phase::opened_by(tcp),
            checked: cx.shard().generation() as u32,
        };
        cx.set_evictable(true);
        cx.expire_in(state.phase.lifetime(tcp.is_some(), &self.config.timeouts));
        let verdict = self.deliver(cx, packet, seat, hash)?;
        if let Verdict::Drop(reason) = verdict {
            return Ok(Admission::Refuse(reason));
        }
        cx.shard().counts.flows += 1;
        self.edition.count(seat, cx.shard_id(), packet.len(), cx.now());
        Ok(Admission::Admit(state, verdict))
    }

    /// The backend of a new flow: the one that a connection ID names, or that of the table. Where
    /// addresses are translated, the flow's translated endpoints must be no other flow's.
    fn choose(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &Packet<'_>,
        number: u16,
        key: &FlowKey,
        hash: u64,
    ) -> Option<Seat> {
        let named = self.named(cx, packet, number);
        cx.shard().counts.named += u64::from(named.is_some());
        let table = &cx.shard().assignment().clone().tables[usize::from(number)];
        if self.service(number).mode != Mode::Nat {
            let picked = || table.pick(hash).map(|backend| backend as u16);
            return named.or_else(picked).map(|backend| Seat { service: number, backend });
        }
        let others = table.alternatives(hash).take(TRIES).map(|backend| backend as u16);
        let mut seats =
            named.into_iter().chain(others).map(|backend| Seat { service: number, backend });
        seats.find(|seat| cx.is_free(&self.translated(key, *seat)))
    }

    /// The backend that a packet's QUIC connection ID names, unless it is down.
    #[inline]
    fn named(&self, cx: &mut Cx<'_, LbShard>, packet: &Packet<'_>, number: u16) -> Option<u16> {
        let routing = self.service(number).quic?;
        if packet.is_later_fragment() {
            return None;
        }
        let headers = packet.headers();
        let end = packet.data().len().min(headers.end as usize);
        let payload = packet.data().get(usize::from(headers.l4) + udp::HEADER..end)?;
        let backend = self.map.server(number, routing.server_id(payload)?)?;
        (cx.shard().assignment().health(number, backend) != Health::Down).then_some(backend)
    }

    /// The key of a client's flow once its packets go to the backend.
    fn translated(&self, key: &FlowKey, seat: Seat) -> FlowKey {
        let backend = self.backend(seat);
        let port = backend.port.unwrap_or(key.first_port());
        with_inner(key, backend.address, port)
    }

    /// What becomes of a packet from a backend whose flow is not known here: it is translated back if
    /// its endpoint tells the service.
    fn open_from_inside(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        let key = packet.key();
        let tcp = match flags(packet) {
            Ok(tcp) => tcp.unwrap_or(TcpFlags(0)),
            Err(reason) => return Ok(Admission::Refuse(reason)),
        };
        // A SYN without ACK opens a connection of the backend's own.
        let asks = tcp.syn() && !tcp.ack();
        let seat = self.map.backend_at(key.first(), key.first_port(), key.protocol());
        let Some(seat) = seat.filter(|_| !asks) else { return Ok(self.stranger(packet)) };
        let service = self.service(seat.service);
        let Some(port) = service.ports.first().map(|range| range.low) else {
            return Ok(self.stranger(packet));
        };
        cx.shard().counts.unpinned_answers += 1;
        Ok(Admission::Pass(self.answer_as(packet, service.vip, port)))
    }

    /// A packet that belongs to no service.
    fn stranger<S>(&self, packet: &Packet<'_>) -> Admission<S> {
        match self.config.other {
            _ if is_link_local(packet) => Admission::Pass(Verdict::Forward),
            Other::Pass => Admission::Pass(Verdict::Forward),
            Other::Drop => Admission::Refuse(DropReason::Denied),
        }
    }

    /// A packet of a flow whose backend is down.
    fn leave(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Option<Verdict>> {
        let service = self.service(state.seat.service);
        if service.on_down == OnDown::Reset && service.protocol == protocol::TCP {
            cx.shard().counts.reset += 1;
            cx.close();
            self.reset(cx, packet)?;
            return Ok(Some(Verdict::Drop(DropReason::NoBackend)));
        }
        cx.shard().counts.moved += 1;
        if service.mode == Mode::Nat {
            // Another backend is another second key.
            return Ok(Some(Verdict::Restart));
        }
        let table = &cx.shard().assignment().tables[usize::from(state.seat.service)];
        let Some(backend) = table.pick(state.hash) else {
            cx.shard().counts.no_backend += 1;
            return Ok(Some(Verdict::Drop(DropReason::NoBackend)));
        };
        state.seat.backend = backend as u16;
        Ok(None)
    }
}

impl NetworkFunction for Lb {
    type Flow = FlowState;
    type Shard = LbShard;

    fn spec(&self) -> FunctionSpec {
        let aliases = self.config.services.iter().any(|service| service.mode == Mode::Nat);
        FunctionSpec {
            // By the client alone where addresses are translated: that is the end which both keys of a flow have.
            steering: aliases.then(PacketSet::outer_endpoint),
            aliases,
            // The table of backends stands in for the entry: no packet depends on being remembered.
            passes_without_entry: true,
            decides_lifetime: true,
            ..FunctionSpec::five_tuple()
        }
    }

    fn first(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        let key = packet.key();
        if packet.side() == Side::Inside {
            return self.open_from_inside(cx, packet);
        }
        if let Some(number) = self.map.service(key.first(), key.first_port(), key.protocol()) {
            return self.open(cx, packet, number);
        }
        if self.map.is_vip(key.first()) && answer::is_echo_request(packet) {
            self.echo(cx, packet)?;
            return Ok(Admission::Pass(Verdict::Consume));
        }
        Ok(self.stranger(packet))
    }

    #[inline]
    fn packet(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Verdict> {
        let from_client = !packet.is_forward();
        if packet.is_icmp_error() {
            return self.error(cx, packet, state.seat, state.port, state.hash);
        }
        let tcp = match flags(packet) {
            Ok(tcp) => tcp,
            Err(reason) => return Ok(Verdict::Drop(reason)),
        };
        let before = state.phase;
        state.phase = match before.after(from_client, tcp) {
            Step::To(phase) => phase,
            Step::Anew => return Ok(Verdict::Restart),
        };
        if before == Phase::Opening && state.phase != Phase::Opening {
            cx.set_evictable(false);
        }
        let is_tcp = packet.headers().protocol == protocol::TCP;
        cx.expire_in(state.phase.lifetime(is_tcp, &self.config.timeouts));
        if !from_client {
            let service = self.service(state.seat.service);
            return Ok(match service.mode {
                Mode::Nat => self.answer_as(packet, service.vip, state.port),
                // A backend that answers directly, by way of this machine.
                Mode::DsrIpip | Mode::DsrGue => Verdict::Forward,
            });
        }
        if let Some(named) = self.named(cx, packet, state.seat.service)
            && named != state.seat.backend
        {
            // Another connection between the same endpoints: the ID says more than they do.
            cx.shard().counts.named += 1;
            if self.service(state.seat.service).mode == Mode::Nat {
                return Ok(Verdict::Restart);
            }
            state.seat.backend = named;
        }
        let Seat { service, backend } = state.seat;
        if cx.shard().assignment().health(service, backend) == Health::Down
            && let Some(verdict) = self.leave(cx, packet, state)?
        {
            return Ok(verdict);
        }
        state.checked = cx.shard().generation() as u32;
        self.deliver(cx, packet, state.seat, state.hash)
    }

    #[inline(always)]
    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<FlowState> {
        OpenFlows::of(self)
    }

    /// There was no room for the flow, or it was refused by another function.
    fn discarded(&self, cx: &mut Cx<'_, LbShard>, _: FlowState) {
        cx.shard().counts.unpinned += 1;
    }

    fn non_flow(&self, cx: &mut Cx<'_, LbShard>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        if packet.is_icmp_error()
            && let Some(verdict) = self.error_without_flow(cx, packet)?
        {
            return Ok(verdict);
        }
        Ok(match self.stranger::<FlowState>(packet) {
            Admission::Refuse(reason) => Verdict::Drop(reason),
            _ => Verdict::Forward,
        })
    }

    fn periodic(&self, cx: &mut Cx<'_, LbShard>) -> Outcome<()> {
        cx.shard().renew(self);
        Ok(())
    }

    fn metrics(&self, local: &LbShard, metrics: &mut Metrics) {
        local.counts.add_to(metrics);
    }
}

/// The flags of a TCP segment; `None` for other packets and for fragments that do not have them.
#[inline]
fn flags(packet: &Packet<'_>) -> Result<Option<TcpFlags>, DropReason> {
    if packet.headers().protocol != protocol::TCP || packet.is_later_fragment() {
        return Ok(None);
    }
    match packet.tcp() {
        Some(segment) => Ok(Some(segment.flags())),
        None => Err(DropReason::Malformed),
    }
}

/// Whether neighbours need the packet to find each other.
fn is_link_local(packet: &Packet<'_>) -> bool {
    let headers = packet.headers();
    let kind = packet.data().get(usize::from(headers.l4));
    match (headers.network, headers.protocol) {
        (Network::Arp, _) => true,
        (Network::Ipv6, protocol::ICMPV6) => {
            kind.is_some_and(|kind| rheostat_packet::wire::icmpv6::is_link_local(*kind))
        }
        _ => false,
    }
}

/// A key with another inner endpoint.
fn with_inner(key: &FlowKey, address: std::net::IpAddr, port: u16) -> FlowKey {
    use std::net::IpAddr::{V4, V6};
    let (protocol, zone) = (key.protocol(), key.zone());
    match (key.family(), address, key.second()) {
        (Family::V4, V4(inner), V4(outer)) => {
            FlowKey::v4((inner, port), (outer, key.second_port()), protocol, zone)
        }
        (Family::V6, V6(inner), V6(outer)) => {
            FlowKey::v6((inner, port), (outer, key.second_port()), protocol, zone)
        }
        _ => unreachable!("the addresses of a service and of its backends are of one family"),
    }
}
