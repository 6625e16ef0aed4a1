//! What a lane runs for a service over TCP.

mod arrival;
mod deferred;
mod errors;
mod half_open;
mod lifecycle;
mod notes;
mod opening;
mod pace;
mod reclaim;
mod rounds;

use std::sync::Arc;

use rheostat_base::{DropReason, LaneId, ShardId, Time};
use rheostat_ip::{Admission, ErrorsAfterChain, Network, Stack};
use rheostat_packet::{Headers, Mbuf, Tuple};
use rheostat_run::{Batch, DeferredWork, Output, PacketInfo, Service, ServiceSpec, ShardSet};
use rheostat_state::Shard;
use rheostat_tcp::{Header, Segment, SendReason, State, SynCookies};

use self::lifecycle::End;
use self::notes::{Cause, Noted};
use self::pace::Pace;
use self::reclaim::Reclaim;
use crate::connections::{Connections, Found, NO_SLOT};
use crate::connector::Connector;
use crate::counters::Counters;
use crate::driver::{Driver, Surroundings};
use crate::due::Due;
use crate::egress::{Egress, Label, Outgoing};
use crate::ends::Ends;
use crate::inspection::Visit;
use crate::listeners::Listeners;
use crate::ports::Ports;
use crate::segment;
use crate::shared::Shared;

/// Connections whose deadlines are looked at in a row at most, so that packets do not wait long.
const ROW: usize = 128;
/// Packets ahead of the one at hand whose connections are asked for.
const AHEAD: usize = 4;
/// Packets that are admitted between the request for a cell of the index and the look at it.
const LAG: usize = 8;

/// A service over TCP in one lane.
///
/// # The way of a segment
///
/// | step | where | touches |
/// |---|---|---|
/// | admitted: frame, IP header, route to this machine | [`Stack::admit`], all packets of the burst | the first line of the packet |
/// | verified: checksum; options parsed | `segment.rs` | all of the packet |
/// | found by its key and hash, which the lane has computed | `connections.rs` | a line of the shard's index, the entry |
/// | taken by the protocol | [`rheostat_tcp::Connection::handle_segment`] | the entry, and the receive buffer for data |
/// | read, parsed, handled, encoded | `conversation.rs` | the application's part, the send buffer |
/// | sent: acknowledgement, data | `egress.rs` | buffers for packets |
/// | armed: the next deadline | `deadlines.rs` | nothing, mostly |
///
/// The network layer admits all packets of a burst before the first is handled. The other steps are done for a packet before the
/// next. A segment costs work linear in its length and in the work of the application; the table of connections is hashed with a
/// secret.
pub(crate) struct TcpService<D: Driver> {
    driver: D,
    around: Surroundings,
    cookies: SynCookies,
    lane: LaneId,
    /// Inspections that the lane takes part in.
    visits: Vec<Visit>,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    /// For segments that lie in several buffers.
    joined: Vec<u8>,
    /// The slots that the batch's packets may belong to.
    candidates: Vec<(ShardId, u32)>,
    /// The decisions of the network layer about the batch's packets.
    admissions: Vec<Admission>,
    pace: Pace,
    /// When memory is scarce.
    reclaim: Reclaim,
    /// For traces.
    noted: Noted,
    /// These shards, while the lane goes through them.
    round: Vec<ShardId>,
    /// Those of them whose connections have not all noticed that the service ends; `None` before the first has been told.
    undrained: Option<Vec<ShardId>>,
    /// Whether the connections that were idle when the service was told to end have been closed.
    has_drained: bool,
}

impl<D: Driver> TcpService<D> {
    pub(crate) fn new(
        lane: LaneId,
        driver: D,
        network: Arc<Network>,
        shared: Arc<Shared>,
        ports: Option<Arc<Ports>>,
    ) -> TcpService<D> {
        let stack = Stack::new(network, ErrorsAfterChain::ToSender).with_tcp();
        let outgoing = ports.as_ref().map(|ports| ports.config().clone()).unwrap_or_default();
        TcpService {
            around: Surroundings {
                now: Time::ZERO,
                egress: Egress::new(stack),
                listeners: Listeners::new(shared.listeners.clone(), outgoing),
                connector: Connector::new(ports, shared.clone()),
                touched: Vec::new(),
                due: Due::new(lane, shared.clone()),
            },
            counters: shared.counters(lane),
            cookies: shared.syn_cookies,
            driver,
            lane,
            visits: Vec::new(),
            reclaim: Reclaim::default(),
            round: Vec::with_capacity(shared.shard_count()),
            undrained: None,
            shared,
            joined: Vec::new(),
            candidates: Vec::new(),
            admissions: Vec::new(),
            pace: Pace::default(),
            noted: Noted::new(),
            has_drained: false,
        }
    }

    /// Admits the packets of a batch. Meanwhile, asks for where they are looked up, then for what leads to their connections, and for the
    /// first connections.
    fn admit(&mut self, batch: &mut Batch, shards: &ShardSet, out: &mut Output) {
        let (packets, infos, _) = batch.parts();
        for info in &*infos {
            if let Some(connections) = connections_of::<D>(info, shards) {
                connections.prefetch_index(info.hash);
            }
        }
        self.admissions.clear();
        self.candidates.clear();
        let mut lookups = infos.iter();
        for (place, (packet, info)) in packets.iter_mut().zip(&*infos).enumerate() {
            out.set_now(info.now.max(self.pace.now));
            self.admissions.push(self.around.egress.stack.admit(packet, out));
            if place >= LAG {
                lookups.next().into_iter().for_each(|info| self.look_up(info, shards));
            }
        }
        lookups.for_each(|info| self.look_up(info, shards));
        (0..AHEAD).for_each(|place| self.prefetch(place, shards));
    }

    /// Finds the slot that a packet's connection may have.
    #[inline]
    fn look_up(&mut self, info: &PacketInfo, shards: &ShardSet) {
        let connections = connections_of::<D>(info, shards);
        let slot = connections.and_then(|connections| connections.prefetch_slot(info.hash));
        self.candidates.push((info.shard, slot.unwrap_or(NO_SLOT)));
    }

    /// Asks for the connection of the packet at `place` of the batch.
    #[inline]
    fn prefetch(&self, place: usize, shards: &ShardSet) {
        if let Some(&(shard, slot)) = self.candidates.get(place)
            && slot != NO_SLOT
            && let Some(shard) = shards.get(shard)
        {
            shard.local::<Connections<D::Stream>>().prefetch_entry(slot);
        }
    }

    fn handle_packet(
        &mut self,
        packet: Mbuf,
        (info, candidate): (&PacketInfo, u32),
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        self.counters.segments_in.increment();
        let mut joined = std::mem::take(&mut self.joined);
        let outcome = match segment::of(&packet, &info.headers, &mut joined) {
            Ok(segment) => match shards.get_mut(info.shard) {
                Some(shard) => {
                    let (_, connections) = shard.split::<Connections<D::Stream>>();
                    self.handle_segment(&packet, info, &segment, candidate, connections, out)
                }
                None => Err(DropReason::TcpInvalid),
            },
            Err(reason) => {
                self.counters.segments_in_error.increment();
                Err(reason)
            }
        };
        self.joined = joined;
        self.end_packet(packet, outcome, out);
    }

    /// Consumes a packet, or drops it.
    #[inline]
    fn end_packet(&mut self, packet: Mbuf, outcome: Result<(), DropReason>, out: &mut Output) {
        if self.noted.is_watched {
            self.comment(&packet, out);
        }
        match outcome {
            Ok(()) => out.consume(packet),
            Err(reason) => out.drop(packet, reason),
        }
    }

    /// Handles a packet that has been put together from fragments; `info` is that of the last one, whose flow is that of the
    /// datagram as its first fragment told.
    #[cold]
    fn handle_reassembled(
        &mut self,
        packet: Mbuf,
        mut info: PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let key = if info.forward() { info.key() } else { info.key().reversed() };
        match Headers::parse(&packet) {
            Ok(headers) if Tuple::of(&packet, &headers) == Tuple::Flow(key) => {
                info.headers = headers;
                self.handle_packet(packet, (&info, NO_SLOT), shards, out);
            }
            _ => out.drop(packet, DropReason::FragmentInvalid),
        }
    }

    /// Lets a connection go on after something has happened to it, such as a segment, and the connections that the driver changes in its
    /// turn. Connections that are over are removed.
    fn advance(
        &mut self,
        mut slot: u32,
        mut segment: Option<&Segment<'_>>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) {
        loop {
            if let Some(end) = self.drive(slot, segment.take(), connections, out) {
                self.end(slot, end, connections);
            }
            let Some(touched) = self.around.touched.pop() else { return };
            slot = touched;
        }
    }

    fn end(&mut self, slot: u32, end: End, connections: &mut Connections<D::Stream>) {
        self.shared.budget.close();
        match end {
            End::Retire(stub) if self.shared.budget.enter_time_wait() => {
                self.around.due.note(connections.shard(), stub.deadline());
                connections.retire(slot, stub);
            }
            End::Retire(_) | End::Remove => connections.remove(slot),
        }
    }

    /// Sends a segment of no connection, or of a half-open one.
    fn send_alone(
        &mut self,
        (ends, device, state): (&Ends, rheostat_base::DeviceId, Option<State>),
        (header, reason): (&Header, SendReason),
        out: &mut Output,
    ) {
        let route = self.around.egress.route(ends.remote, device, out.now());
        self.counters.segments_out.increment();
        let label = match self.noted.is_watched || out.mirror().is_armed() {
            true => self.note_answer((ends, device, state), (header, 0), reason, out),
            false => Label::default(),
        };
        let segment = Outgoing { header, payload: [&[], &[]], label };
        self.around.egress.send(ends, device, &route, segment, out);
    }

    /// Does what is due in a shard, up to `most` connections, and returns how many those were.
    fn tick_shard(
        &mut self,
        connections: &mut Connections<D::Stream>,
        most: usize,
        out: &mut Output,
    ) -> usize {
        let now = out.now();
        for done in 0..most {
            let Some(slot) = connections.pop_due(now) else { return done };
            match connections.get(slot) {
                Found::Nothing => {}
                Found::HalfOpen(slot, _) => {
                    self.noted.cause = Cause::Timer;
                    self.noted.begin_turn();
                    self.tick_half_open(slot, connections, out);
                }
                Found::Live(slot, entry) => {
                    if out.mirror().is_armed() {
                        let is_due = entry.tcp.next_deadline().is_some_and(|due| due <= now);
                        self.noted.cause = if is_due { Cause::Timer } else { Cause::Turn };
                    }
                    let doubled = entry.tcp.timeout_doublings();
                    entry.tcp.handle_timeout(now);
                    if entry.tcp.timeout_doublings() > doubled {
                        self.counters.retransmission_timeouts.increment();
                    }
                    self.advance(slot, None, connections, out);
                }
                Found::Closed(slot, closed) => {
                    let due = closed.stub.deadline();
                    if due <= now {
                        connections.remove(slot);
                        self.shared.budget.leave_time_wait();
                    } else {
                        connections.arm(slot, due);
                    }
                }
            }
        }
        most
    }

    /// Takes what members have done, if they have, and gives them more: a member that is given few requests at a time would have
    /// nothing to do until all packets of a burst are done.
    #[inline]
    fn collect(&mut self, shards: &mut ShardSet, out: &mut Output) {
        if let Some(client) = self.driver.deferred().and_then(|requests| requests.pool_client())
            && client.has_replies()
        {
            client.collect();
            self.settle(shards, out);
        }
    }

    fn is_inspected(&self) -> bool {
        !self.visits.is_empty() || self.shared.has_inspections(self.lane)
    }
}

/// The connections among which that of a packet is, if the packet has a key.
#[inline]
fn connections_of<'a, D: Driver>(
    info: &PacketInfo,
    shards: &'a ShardSet,
) -> Option<&'a Connections<D::Stream>> {
    shards.get(info.shard).filter(|_| info.has_key()).map(Shard::local)
}

impl<D: Driver> Service for TcpService<D> {
    fn spec(&self) -> ServiceSpec {
        ServiceSpec { comments: true, ..ServiceSpec::default() }
    }

    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.around.due.learn(shards);
        self.around.egress.stack.refresh(out);
        self.pace.begin(out, shards.is_joint());
        self.admit(batch, shards, out);
        for (place, (packet, info)) in batch.drain().enumerate() {
            self.prefetch(place + AHEAD, shards);
            out.set_now(info.now.max(self.pace.now));
            self.noted.begin(&packet, out);
            self.driver.begin_segment(packet.timestamp(), self.pace.began());
            match self.admissions[place] {
                Admission::Transport if info.headers.fragment.is_some() => {
                    self.handle_reassembled(packet, *info, shards, out);
                }
                Admission::Transport => {
                    self.handle_packet(packet, (info, self.candidates[place].1), shards, out);
                }
                Admission::TransportError => self.handle_error(packet, info, shards, out),
                Admission::Back(path) => self.around.egress.stack.send(packet, path, out),
                Admission::Consume => out.consume(packet),
                Admission::Drop(reason) => out.drop(packet, reason),
                // A host passes nothing on.
                Admission::Through(_) => out.drop(packet, DropReason::NotRouted),
            }
            if self.driver.may_take_long() {
                self.pace.end_packet(out);
            }
            self.collect(shards, out);
        }
        self.pace.advance(out);
    }

    #[inline]
    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        match self.driver.deferred().is_some() {
            true => Some(self),
            false => None,
        }
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        let (_, connections) = shard.split::<Connections<D::Stream>>();
        self.counters.moved_connections.add(connections.live() as u64);
        self.around.due.note(connections.shard(), connections.next_deadline());
        // There may be some that have not noticed yet.
        self.has_drained = false;
        self.undrained = None;
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        let now = now.max(self.pace.now);
        self.around.due.learn(shards);
        out.set_now(now);
        self.noted.begin_without_packet(Cause::Timer);
        if self.around.egress.stack.next_deadline() <= now {
            self.around.egress.stack.tick(out);
        }
        if self.shared.is_draining() && !self.has_drained {
            self.begin_draining(shards, out);
        }
        if self.is_inspected() {
            self.show(shards, now);
        }
        if self.shared.calls.any() {
            self.answer_calls(shards, out);
        }
        if self.around.due.next() <= now {
            self.expire(shards, out, now);
        }
        if self.shared.scarcity.is_noted(self.lane) && self.reclaim.next_look() <= now {
            self.reclaim(shards, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        if self.shared.is_draining() && !self.has_drained
            || self.is_inspected()
            || self.shared.calls.any()
        {
            return Some(Time::ZERO);
        }
        let due = self.around.due.next().min(self.around.egress.stack.next_deadline());
        Some(if self.shared.scarcity.is_noted(self.lane) {
            due.min(self.reclaim.next_look())
        } else {
            due
        })
    }

    /// Resets what is left, so that no peer waits for an answer.
    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        let now = now.max(self.pace.now);
        out.set_now(now);
        self.around.due.learn(shards);
        self.noted.begin_without_packet(Cause::End);
        let unanswered = self.driver.deferred().map_or(0, |requests| requests.unanswered());
        self.counters.unanswered.add(unanswered);
        for shard in shards.iter_mut() {
            let (_, connections) = shard.split::<Connections<D::Stream>>();
            let live: Vec<_> = connections.live_slots().collect();
            for slot in live {
                if let Found::Live(_, entry) = connections.get(slot) {
                    D::abort(entry);
                    // No connection stays, not even in TIME-WAIT.
                    self.drive(slot, None, connections, out);
                    self.end(slot, End::Remove, connections);
                }
            }
            self.around.touched.clear();
            self.reset_half_open(connections, out);
        }
        self.around.egress.stack.finish(out);
    }
}

impl<D: Driver> std::fmt::Debug for TcpService<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpService")
            .field("next_due", &self.around.due.next())
            .finish_non_exhaustive()
    }
}
