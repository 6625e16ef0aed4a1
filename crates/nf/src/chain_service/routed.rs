//! The way of a packet where devices have addresses: through the network layer before the chain, and again
//! after it.

use std::sync::Arc;

use rheostat_base::{DropReason, Time};
use rheostat_ip::{Admission, Departure, ErrorsAfterChain, Network, Stack, Turn};
use rheostat_packet::{Burst, Mbuf};
use rheostat_run::{Arrival, Egress, LaneState};
use rheostat_state::Probe;

use super::ChainService;
use super::journal::{note_admission, note_departure};
use crate::chain::Chain;
use crate::verdict::Verdict;

/// What a call of the stack works with.
macro_rules! turn {
    ($lane:expr, $out:expr, $now:expr) => {
        &mut Turn { now: $now, pool: &mut *$lane.pool, counters: $lane.counters, tap: $out.tap() }
    };
}

impl<C: Chain> ChainService<C> {
    /// The same on a network, for one of `lanes` lanes: packets are routed by their destination, and leave
    /// for their next hop.
    #[must_use]
    pub fn with_network(mut self, network: Arc<Network>, lanes: usize) -> ChainService<C> {
        // A chain without state changes no addresses.
        let after_chain = match C::STATEFUL {
            true => ErrorsAfterChain::ThroughChain,
            false => ErrorsAfterChain::ToSender,
        };
        self.stack = Some(Box::new(Stack::new(network, lanes, after_chain)));
        self
    }

    /// Lets packets leave that have waited for what other lanes learned in the meantime.
    #[inline]
    pub(super) fn refresh(
        &mut self,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        if let Some(stack) = &mut self.stack {
            stack.refresh(turn!(lane, out, now));
        }
        self.drain_stack(lane, out);
    }

    /// Runs the chain on one packet, with the network layer before and after it, and disposes of it.
    pub(super) fn run_routed(
        &mut self,
        mut packet: Mbuf,
        arrival: &Arrival,
        probe: Probe,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
    ) {
        let Some(stack) = &mut self.stack else { return };
        let path = match stack.admit(&mut packet, turn!(lane, out, arrival.now)) {
            Admission::Through(path) => path,
            other => return self.end_here(packet, other, lane, out, arrival.now),
        };
        let followed = packet.mark() != 0;
        let known = followed && self.note_lookup(&packet, arrival, lane, out);
        let verdict = self.judge(&mut packet, arrival, probe, lane);
        if followed {
            let made = self.originated.made();
            self.note_decisions(&packet, arrival, known, made, lane, out);
        }
        let Some(stack) = &mut self.stack else { return };
        match verdict {
            Ok(Verdict::Forward | Verdict::Send(_)) => {
                let departure = stack.depart(&mut packet, path, turn!(lane, out, arrival.now));
                self.leave(packet, departure, lane, out, arrival.now);
            }
            // The chain knows nobody behind the address: then it is the machine's.
            Ok(Verdict::Drop(DropReason::NoMapping)) if path.leads_home() => {
                let admission = stack.deliver(&mut packet, path, turn!(lane, out, arrival.now));
                let admission = match admission {
                    Admission::Drop(DropReason::NoListener) => {
                        Admission::Drop(DropReason::NoMapping)
                    }
                    other => other,
                };
                self.end_here(packet, admission, lane, out, arrival.now);
            }
            verdict => self.dispose(packet, arrival.side, verdict, lane, out),
        }
        self.send_originated(lane, out, arrival.now);
        self.drain_stack(lane, out);
    }

    /// Runs the network layer alone on one packet, for a chain without functions.
    #[inline]
    fn relay_routed(
        &mut self,
        mut packet: Mbuf,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        let Some(stack) = &mut self.stack else { return };
        match stack.admit(&mut packet, turn!(lane, out, now)) {
            Admission::Through(path) => {
                let departure = stack.depart(&mut packet, path, turn!(lane, out, now));
                self.leave(packet, departure, lane, out, now);
            }
            other => self.end_here(packet, other, lane, out, now),
        }
    }

    /// Runs the network layer alone on a burst.
    pub(super) fn relay_all(
        &mut self,
        burst: &mut Burst,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        for packet in &*burst {
            packet.prefetch();
        }
        self.refresh(lane, out, now);
        for packet in burst.drain(..) {
            self.relay_routed(packet, lane, out, now);
        }
        self.drain_stack(lane, out);
    }

    /// Disposes of a packet that does not go to the chain.
    #[inline(never)]
    fn end_here(
        &mut self,
        mut packet: Mbuf,
        admission: Admission,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        let Some(stack) = &mut self.stack else { return };
        if packet.mark() != 0 {
            note_admission(&packet, admission, out);
        }
        let departure = match admission {
            Admission::Through(path) | Admission::Back(path) => {
                stack.depart(&mut packet, path, turn!(lane, out, now))
            }
            Admission::Consume => Departure::Consume,
            Admission::Drop(reason) => Departure::Drop(reason),
        };
        self.leave(packet, departure, lane, out, now);
        self.drain_stack(lane, out);
    }

    #[inline(always)]
    fn leave(
        &mut self,
        packet: Mbuf,
        departure: Departure,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        if packet.mark() != 0 {
            note_departure(&packet, departure, self.stack.as_deref(), out);
        }
        match departure {
            Departure::Send(device) => out.send(device, packet, lane.pool, lane.counters),
            Departure::Hold(next) => {
                if let Some(stack) = &mut self.stack {
                    stack.hold(packet, next, turn!(lane, out, now));
                }
            }
            Departure::Consume => out.consume(packet, lane.pool, lane.counters),
            Departure::Drop(reason) => out.discard(packet, reason, lane.pool, lane.counters),
        }
    }

    /// Sends a packet that a function made, which is addressed, on a device that the routes name.
    pub(super) fn send_own(
        &mut self,
        mut packet: Mbuf,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        let Some(stack) = &mut self.stack else { return };
        let path = stack.own(packet.device());
        let departure = stack.depart(&mut packet, path, turn!(lane, out, now));
        self.leave(packet, departure, lane, out, now);
    }

    /// Does what is due in the network layer.
    pub(super) fn tick_stack(
        &mut self,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        if let Some(stack) = &mut self.stack {
            stack.tick(turn!(lane, out, now));
        }
        self.drain_stack(lane, out);
    }

    /// Sends what is left in the network layer, and drops what waits there.
    pub(super) fn finish_stack(
        &mut self,
        lane: &mut LaneState<'_, C::Local>,
        out: &mut Egress,
        now: Time,
    ) {
        self.drain_stack(lane, out);
        if let Some(stack) = &mut self.stack {
            stack.finish(turn!(lane, out, now));
        }
    }

    #[inline]
    pub(super) fn drain_stack(&mut self, lane: &mut LaneState<'_, C::Local>, out: &mut Egress) {
        if let Some(stack) = &mut self.stack
            && stack.has_output()
        {
            let (pool, counters, mut returning) = (&mut *lane.pool, lane.counters, Vec::new());
            stack.drain(
                |device, packet| out.send(device, packet, pool, counters),
                |packet| returning.push(packet),
            );
            returning.into_iter().for_each(|packet| out.turn_round(packet));
        }
    }
}
