//! One lane's network layer. A packet passes it twice: [`Stack::admit`] looks at it before the chain sees
//! it, and [`Stack::depart`] finds its next hop after. In between lies the chain, which may change it. A
//! packet of the machine's own takes only the second half.
//!
//! Most packets are plain, and pass both halves by the burst: [`Stack::admit_burst`], [`Stack::depart_burst`]. Where nothing lies in
//! between, [`Stack::forward`] does with them at once what both would have done.
//!
//! A stack reads no clock and does no I/O: the time is that of the [`Output`], which takes what it sends besides the packet
//! at hand.

mod adjacency;
mod admit;
mod burst;
mod depart;
mod errors;
mod forward;
mod local;
mod plain;
mod port;
mod questions;
mod reassemble;
#[cfg(test)]
mod tests;
mod waiting;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_packet::Mbuf;
use rheostat_packet::wire::ethernet;
use rheostat_run::Output;

use crate::local_service::Outbox;
use crate::neighbour::{NeighbourKey, Seen, View, mapped};
use crate::network::Network;
use crate::reassembly::Reassembler;
use crate::route::{Hop, HopId, Routes};
use crate::run_limit::LaneLimit;
use adjacency::Adjacencies;
use forward::Forwarding;
use port::StackPort;
use waiting::WaitingRoom;

/// How long a lane with packets that wait for a neighbour may sleep: another lane may receive the answer.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Where errors about packets go that have passed the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorsAfterChain {
    /// To the packet's sender: the chain changes no addresses.
    ToSender,
    /// Back through the chain, as if the next router had sent them, so that it can undo in them what it
    /// has done to the packet.
    ThroughChain,
}

/// What becomes of a packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// On to the chain, and then to [`Stack::depart`].
    Through(Path),
    /// It has become the answer to itself, and goes to [`Stack::depart`] at once.
    Back(Path),
    /// It is a segment for the transport that is beside this layer ([`Stack::with_tcp`]), and is as it arrived.
    Transport,
    /// It is an ICMP error whose checksum is right and that quotes a segment of TCP, for the same transport.
    TransportError,
    /// It has served its purpose.
    Consume,
    /// It goes no further.
    Drop(DropReason),
}

/// What becomes of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Out of this device, as it is now.
    Send(DeviceId),
    /// To [`Stack::hold`], until its next hop has a link address.
    Hold(Next),
    /// Other packets have taken its place.
    Consume,
    /// It goes no further.
    Drop(DropReason),
}

/// What is known of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The destination for which `hop` was found, as a number; [`NOWHERE`] when none was.
    destination: u128,
    hop: HopId,
    /// Where its IP header starts.
    l3: u8,
    origin: Origin,
}

/// No destination: the address is one of a group.
const NOWHERE: u128 = u128::MAX;

/// The sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Another host. Errors about the packet go there.
    Transit,
    /// Another host, to an address of this machine that the chain may know better.
    Home,
    /// This machine.
    Own,
}

impl Path {
    /// Whether the packet is for this machine, should the chain have no use for it: then it goes to
    /// [`Stack::deliver`].
    #[inline]
    pub fn leads_home(&self) -> bool {
        self.origin == Origin::Home
    }

    fn unknown(l3: u8, origin: Origin) -> Path {
        Path { destination: NOWHERE, hop: HopId::NONE, l3, origin }
    }
}

/// The next hop of a packet that has to wait for its link address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    key: NeighbourKey,
    path: Path,
}

/// One lane's network layer.
#[derive(Debug)]
pub struct Stack {
    network: Arc<Network>,
    /// As of the last [`Stack::refresh`].
    routes: Arc<Routes>,
    neighbours: View,
    /// The link addresses of routers, by hop.
    gateways: Vec<Option<Seen>>,
    adjacencies: Adjacencies,
    forwarding: Forwarding,
    /// The network's changes that this lane has seen.
    changes: u64,
    ports: Box<[Option<StackPort>]>,
    errors: LaneLimit,
    errors_after_chain: ErrorsAfterChain,
    /// Whether segments of TCP for this machine go to a transport beside this layer.
    has_tcp: bool,
    waiting: WaitingRoom,
    /// When waiting packets are to be looked at even if nothing arrives.
    look_again: Time,
    outbox: Outbox,
    reassembler: Reassembler,
}

impl Stack {
    /// The network layer of a lane.
    pub fn new(network: Arc<Network>, after_chain: ErrorsAfterChain) -> Stack {
        let last = network.interfaces().iter().map(|interface| interface.device.index()).max();
        let mut ports: Vec<Option<StackPort>> = Vec::new();
        ports.resize_with(last.map_or(0, |last| last + 1), || None);
        for interface in network.interfaces() {
            ports[interface.device.index()] = Some(StackPort::of(interface, network.interfaces()));
        }
        let policy = network.policy();
        Stack {
            routes: network.routes(),
            neighbours: View::default(),
            gateways: Vec::new(),
            adjacencies: Adjacencies::new(&ports),
            forwarding: Forwarding::default(),
            changes: 0,
            ports: ports.into(),
            errors: network.errors().of_lane(),
            errors_after_chain: after_chain,
            has_tcp: false,
            waiting: WaitingRoom::new(policy.waiting, policy.waiting_per_neighbour),
            look_again: Time::NEVER,
            outbox: Outbox::new(),
            reassembler: Reassembler::default(),
            network,
        }
    }

    /// The same beside a transport for TCP, which gets the segments for this machine's addresses where they lie
    /// ([`Admission::Transport`]) instead of the local services.
    #[must_use]
    pub fn with_tcp(mut self) -> Stack {
        self.has_tcp = true;
        self
    }

    /// The network that it is the layer of.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Catches up with what other lanes have learned, and with other routes and MTUs. To be called before the packets of a
    /// poll, so that those that have waited leave before them.
    #[inline]
    pub fn refresh(&mut self, out: &mut Output) {
        if self.network.changes() != self.changes {
            self.catch_up(out);
        }
    }

    #[cold]
    #[inline(never)]
    fn catch_up(&mut self, out: &mut Output) {
        self.changes = self.network.changes();
        self.routes = self.network.routes();
        let policy = self.network.policy();
        self.waiting.set_limits(policy.waiting, policy.waiting_per_neighbour);
        for (interface, mtu) in self.network.interfaces().iter().zip(self.network.mtus()) {
            if let Some(Some(port)) = self.ports.get_mut(interface.device.index()) {
                port.set_mtu(mtu);
            }
        }
        let Stack { network, neighbours, waiting, .. } = self;
        // Those that packets wait for and that have answered, or are given up.
        let decided: Vec<NeighbourKey> = network.with_neighbours(|table| {
            neighbours.follow(table);
            waiting.keys().filter(|key| !table.is_asked(key)).copied().collect()
        });
        self.gateways = self.routes.hops().iter().map(|hop| self.seen_gateway(*hop)).collect();
        self.learn_adjacencies();
        for key in decided {
            self.settle(key, out);
        }
    }

    fn seen_gateway(&self, hop: Hop) -> Option<Seen> {
        match hop {
            Hop::Gateway(device, gateway) => {
                self.neighbours.get(&NeighbourKey::new(device, gateway))
            }
            _ => None,
        }
    }

    /// The path of a packet that a function made, with a link header as `device` has it.
    pub fn own(&self, device: DeviceId) -> Path {
        let l3 = self.port(device).map_or(port::UNTAGGED, |port| port.l3);
        Path::unknown(l3, Origin::Own)
    }

    /// The path of packets of this machine to `destination`, in the place of a packet that arrived on `device`. It holds as long as
    /// [`Stack::changes`] stays the same.
    pub fn path_to(&self, destination: IpAddr, device: DeviceId) -> Path {
        let bits = mapped(destination);
        let Path { l3, origin, .. } = self.own(device);
        match self.look_up(device, bits).0 {
            HopId::NONE => Path::unknown(l3, origin),
            hop => Path { destination: bits, hop, l3, origin },
        }
    }

    /// The device by which packets of this machine to `destination` leave; `None` where no route leads there.
    pub fn device_towards(&self, destination: IpAddr) -> Option<DeviceId> {
        match self.routes.hop(self.routes.lookup(destination)) {
            Hop::OnLink(device) | Hop::Gateway(device, _) => Some(device),
            Hop::None | Hop::Local { .. } | Hop::Proxied | Hop::Broadcast => None,
        }
    }

    /// A number that is another one after routes, neighbours or MTUs of links and paths have changed, as far as this lane has
    /// seen it.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The longest packet that the link of `device` carries to an address like `to`; 0 where it carries none.
    pub fn longest_packet(&self, device: DeviceId, to: IpAddr) -> u16 {
        let ethertype = if to.is_ipv4() { ethernet::IPV4 } else { ethernet::IPV6 };
        self.port(device).map_or(0, |port| port.longest(ethertype))
    }

    /// The longest packet that goes along `path` to `to`, as far as that is known: its first link carries it, and no router has
    /// reported less. `device` counts where the path has no link.
    pub fn longest_along(&self, path: &Path, to: IpAddr, device: DeviceId, now: Time) -> u16 {
        let device = match self.routes.hop(path.hop) {
            Hop::OnLink(device) | Hop::Gateway(device, _) => device,
            _ => device,
        };
        let link = self.longest_packet(device, to);
        self.network.path_mtu(to, now).map_or(link, |path| path.min(link))
    }

    /// Whether one more error or reset may be sent now.
    pub fn may_report(&mut self, now: Time) -> bool {
        self.errors.allow(0, now)
    }

    /// Does what is due.
    pub fn tick(&mut self, out: &mut Output) {
        if self.network.next_deadline() <= out.now() {
            let mut questions = Vec::new();
            let mut outbox = std::mem::take(&mut self.outbox);
            let announces = self.network.advance(out.now(), &mut questions, &mut outbox);
            self.ask_all(&questions, out);
            self.send_outbox(&mut outbox, out);
            self.outbox = outbox;
            if announces {
                self.announce(out);
            }
        }
        self.give_up_fragments(out);
        self.refresh(out);
        self.look_again =
            if self.waiting.is_empty() { Time::NEVER } else { out.now() + LOOK_AGAIN };
    }

    /// When [`Stack::tick`] next has something to do.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        if !self.waiting.is_empty() && self.network.changes() != self.changes {
            // Perhaps some need not wait any longer.
            return Time::ZERO;
        }
        let fragments = self.reassembler.next_deadline().unwrap_or(Time::NEVER);
        self.network.next_deadline().min(self.look_again).min(fragments)
    }

    /// Ends the run: drops what still waits.
    pub fn finish(&mut self, out: &mut Output) {
        for (packet, _) in self.waiting.drain() {
            out.drop(packet, DropReason::NeighbourUnresolved);
        }
        out.counters().waiting.set(0);
    }

    /// Whether the device's link is wide enough for IPv6.
    fn carries_v6(&self, device: DeviceId) -> bool {
        self.port(device).is_some_and(StackPort::carries_v6)
    }

    #[inline(always)]
    fn port(&self, device: DeviceId) -> Option<&StackPort> {
        self.ports.get(device.index())?.as_ref()
    }

    /// Where IP starts in frames of `device`, and in those that are sent by [`Stack::own`] and [`Stack::path_to`] there.
    pub fn network_offset(&self, device: DeviceId) -> usize {
        self.own(device).l3.into()
    }

    /// Sends a packet of this machine, or what is left of another's: by its device, or after its next hop has been resolved. What
    /// cannot be sent is dropped and counted.
    pub fn send(&mut self, mut packet: Mbuf, path: Path, out: &mut Output) {
        match self.depart(&mut packet, path, out) {
            Departure::Send(device) => out.send(device, packet),
            Departure::Hold(next) => self.hold(packet, next, out),
            Departure::Consume => out.consume(packet),
            Departure::Drop(reason) => out.drop(packet, reason),
        }
    }

    /// Makes a packet of a frame of this machine; `None` without a buffer, which is counted.
    fn originate(&mut self, device: DeviceId, frame: &[u8], out: &mut Output) -> Option<Mbuf> {
        let mut packet = out.originate(frame)?;
        packet.set_timestamp(out.now());
        packet.set_device(device);
        Some(packet)
    }

    fn send_outbox(&mut self, outbox: &mut Outbox, out: &mut Output) {
        for packet in outbox.drain() {
            // A local service does not know which link a link-local destination is on.
            self.send_own(DeviceId(0), &packet, out);
        }
    }

    /// Sends an IP packet of this machine. `device` counts for link-local destinations.
    fn send_own(&mut self, device: DeviceId, ip: &[u8], out: &mut Output) {
        let Some(port) = self.port(device) else { return };
        let (frame, l3) = (port.frame(ip), port.l3);
        if let Some(packet) = self.originate(device, &frame, out) {
            self.send(packet, Path::unknown(l3, Origin::Own), out);
        }
    }
}
