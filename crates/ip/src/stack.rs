//! One lane's network layer. A packet passes it twice: [`Stack::admit`] looks at it before the chain sees
//! it, and [`Stack::depart`] finds its next hop after. In between lies the chain, which may change it. A
//! packet of the machine's own takes only the second half.
//!
//! A stack reads no clock and does no I/O: what it sends besides the packet at hand it lays aside, to be
//! taken out by [`Stack::drain`].

mod admit;
mod depart;
mod errors;
mod local;
mod port;
mod questions;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_io::layer::capture::LaneTap;
use rheostat_packet::{Mbuf, PoolCache};
use rheostat_run::account::LaneCounters;

use crate::neighbour::{NeighbourKey, Seen, View};
use crate::network::Network;
use crate::rate_limit::RateLimit;
use crate::resident::Outbox;
use crate::route::{Hop, HopId, Routes};
use port::Port;
use waiting::WaitingRoom;

/// How long a lane with packets that wait for a neighbour may sleep: another lane may receive the answer.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What a call works with.
pub struct Turn<'a> {
    /// The time.
    pub now: Time,
    /// The lane's stock of buffers.
    pub pool: &'a mut PoolCache,
    /// The lane's counters.
    pub counters: &'a LaneCounters,
    /// Shows what happens to packets to whoever looks.
    pub tap: &'a mut LaneTap,
}

impl Turn<'_> {
    /// Drops a packet.
    pub(crate) fn discard(&mut self, packet: Mbuf, reason: DropReason) {
        self.counters.dropped.add(reason, 1);
        self.tap.dropping(&packet, reason);
        self.pool.free(packet);
    }

    /// Ends a packet whose place others take.
    pub(crate) fn consume(&mut self, packet: Mbuf) {
        self.counters.consumed.increment();
        self.tap.consuming(&packet);
        self.pool.free(packet);
    }
}

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

/// Who sent a packet.
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
    /// The network's changes that this lane has seen.
    changes: u64,
    ports: Box<[Option<Port>]>,
    errors: RateLimit,
    errors_after_chain: ErrorsAfterChain,
    waiting: WaitingRoom,
    /// When waiting packets are to be looked at even if nothing arrives.
    look_again: Time,
    /// What is to be sent besides the packet at hand.
    sent: Vec<(DeviceId, Mbuf)>,
    returning: Vec<Mbuf>,
    outbox: Outbox,
}

impl Stack {
    /// The network layer of one of `lanes` lanes.
    pub fn new(network: Arc<Network>, lanes: usize, after_chain: ErrorsAfterChain) -> Stack {
        let last = network.interfaces().iter().map(|interface| interface.device.index()).max();
        let mut ports: Vec<Option<Port>> = Vec::new();
        ports.resize_with(last.map_or(0, |last| last + 1), || None);
        for interface in network.interfaces() {
            ports[interface.device.index()] = Some(Port::of(interface, network.interfaces()));
        }
        let policy = network.policy();
        let share = |count: u32| count.div_ceil(lanes.max(1) as u32);
        Stack {
            routes: network.routes(),
            neighbours: View::default(),
            gateways: Vec::new(),
            changes: 0,
            ports: ports.into(),
            errors: RateLimit::new(share(policy.errors_per_second), share(policy.errors_at_once)),
            errors_after_chain: after_chain,
            waiting: WaitingRoom::new(policy.waiting, policy.waiting_per_neighbour),
            look_again: Time::NEVER,
            sent: Vec::new(),
            returning: Vec::new(),
            outbox: Outbox::new(),
            network,
        }
    }

    /// The network that it is the layer of.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Catches up with what other lanes have learned, and with other routes and MTUs. To be called before the packets of a poll, so that
    /// those that have waited leave before them.
    #[inline]
    pub fn refresh(&mut self, turn: &mut Turn<'_>) {
        if self.network.changes() != self.changes {
            self.catch_up(turn);
        }
    }

    #[cold]
    #[inline(never)]
    fn catch_up(&mut self, turn: &mut Turn<'_>) {
        self.changes = self.network.changes();
        self.routes = self.network.routes();
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
        for key in decided {
            self.settle(key, turn);
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

    /// Does what is due.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.network.next_deadline() <= turn.now {
            let mut questions = Vec::new();
            let mut outbox = std::mem::take(&mut self.outbox);
            let announces = self.network.advance(turn.now, &mut questions, &mut outbox);
            self.ask_all(&questions, turn);
            self.send_outbox(&mut outbox, turn);
            self.outbox = outbox;
            if announces {
                self.announce(turn);
            }
        }
        self.refresh(turn);
        self.look_again = if self.waiting.is_empty() { Time::NEVER } else { turn.now + LOOK_AGAIN };
    }

    /// When [`Stack::tick`] next has something to do.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        if !self.waiting.is_empty() && self.network.changes() != self.changes {
            // Perhaps some need not wait any longer.
            return Time::ZERO;
        }
        self.network.next_deadline().min(self.look_again)
    }

    /// Ends the run: drops what still waits.
    pub fn finish(&mut self, turn: &mut Turn<'_>) {
        for (packet, _) in self.waiting.drain() {
            turn.discard(packet, DropReason::NeighbourUnresolved);
        }
        turn.counters.waiting.set(0);
    }

    /// Whether [`Stack::drain`] has something to give out.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.sent.is_empty() || !self.returning.is_empty()
    }

    /// Gives out what is to be sent besides the packets at hand: packets to `send`, each with its device,
    /// and to `turn_round` those that are to arrive again.
    pub fn drain(&mut self, mut send: impl FnMut(DeviceId, Mbuf), turn_round: impl FnMut(Mbuf)) {
        self.sent.drain(..).for_each(|(device, packet)| send(device, packet));
        self.returning.drain(..).for_each(turn_round);
    }

    /// Whether the device's link is wide enough for IPv6.
    fn carries_v6(&self, device: DeviceId) -> bool {
        self.port(device).is_some_and(Port::carries_v6)
    }

    #[inline(always)]
    fn port(&self, device: DeviceId) -> Option<&Port> {
        self.ports.get(device.index())?.as_ref()
    }

    /// Sends a packet of this machine, or what is left of another's, and disposes of it.
    fn launch(&mut self, mut packet: Mbuf, path: Path, turn: &mut Turn<'_>) {
        match self.depart(&mut packet, path, turn) {
            Departure::Send(device) => self.sent.push((device, packet)),
            Departure::Hold(next) => self.hold(packet, next, turn),
            Departure::Consume => turn.consume(packet),
            Departure::Drop(reason) => turn.discard(packet, reason),
        }
    }

    /// Makes a packet of a frame of this machine; `None` without a buffer, which is counted.
    fn originate(&mut self, device: DeviceId, frame: &[u8], turn: &mut Turn<'_>) -> Option<Mbuf> {
        turn.counters.originated.increment();
        match turn.pool.alloc_from(frame) {
            Ok(mut packet) => {
                packet.set_timestamp(turn.now);
                packet.set_device(device);
                Some(packet)
            }
            Err(_) => {
                turn.counters.dropped.add(DropReason::NoBuffer, 1);
                None
            }
        }
    }

    fn send_outbox(&mut self, outbox: &mut Outbox, turn: &mut Turn<'_>) {
        for packet in outbox.drain() {
            // Whose link a link-local destination is on, no resident can say.
            self.send_own(DeviceId(0), &packet, turn);
        }
    }

    /// Sends an IP packet of this machine. `device` counts for link-local destinations.
    fn send_own(&mut self, device: DeviceId, ip: &[u8], turn: &mut Turn<'_>) {
        let Some(port) = self.port(device) else { return };
        let (frame, l3) = (port.frame(ip), port.l3);
        if let Some(packet) = self.originate(device, &frame, turn) {
            self.launch(packet, Path::unknown(l3, Origin::Own), turn);
        }
    }
}
