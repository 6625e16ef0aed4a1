//! The way of a packet where devices have addresses: through the network layer before the chain, and again
//! after it.

use std::sync::Arc;

use rheostat_base::DropReason;
use rheostat_ip::{Admission, Departure, ErrorsAfterChain, Network, Stack};
use rheostat_packet::{Burst, Mbuf};
use rheostat_run::{Batch, Output, PacketInfo, ShardSet};
use rheostat_state::Probe;

use super::notes::{note_admission, note_departure};
use super::{ChainService, fast_path};
use crate::chain::Chain;
use crate::verdict::Verdict;

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
    fn refresh(&mut self, out: &mut Output) {
        if let Some(stack) = &mut self.stack {
            stack.refresh(out);
        }
    }

    /// The third stage where there is a network layer: before the chain, and again after it.
    #[inline(never)]
    pub(super) fn run_routed(
        &mut self,
        batch: &mut Batch,
        probes: &[Probe],
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        if let Some(last) = batch.iter().last() {
            out.set_now(last.now);
        }
        self.refresh(out);
        debug_assert_eq!(batch.len(), probes.len(), "every packet has been probed");
        for ((packet, info), &probe) in batch.drain().zip(probes) {
            out.set_now(info.now);
            self.route(packet, info, probe, shards, out);
            self.send_originated(out);
        }
    }

    /// Runs the chain on one packet, with the network layer before and after it, and disposes of it.
    #[inline(always)]
    fn route(
        &mut self,
        mut packet: Mbuf,
        info: &PacketInfo,
        probe: Probe,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let Some(stack) = &mut self.stack else { return };
        let path = match stack.admit(&mut packet, out) {
            Admission::Through(path) => path,
            other => return self.end_here(packet, other, out),
        };
        let steady = self.chain.steady();
        let has_passed = fast_path::pass(&steady, &mut packet, info, probe, shards, out.counters());
        drop(steady);
        let verdict = match has_passed {
            true => Ok(Verdict::Forward),
            false => self.evaluate(&mut packet, info, probe, shards, out),
        };
        let Some(stack) = &mut self.stack else { return };
        match verdict {
            Ok(Verdict::Forward | Verdict::Send(_)) => {
                let departure = stack.depart(&mut packet, path, out);
                self.leave(packet, departure, out);
            }
            // The chain knows nobody behind the address: then it is the machine's.
            Ok(Verdict::Drop(DropReason::NoMapping)) if path.leads_home() => {
                let admission = match stack.deliver(&mut packet, path, out) {
                    Admission::Drop(DropReason::NoListener) => {
                        Admission::Drop(DropReason::NoMapping)
                    }
                    other => other,
                };
                self.end_here(packet, admission, out);
            }
            verdict => self.apply_verdict(packet, info.side, verdict, out),
        }
    }

    /// Runs the network layer alone on one packet, for a chain without functions.
    #[inline]
    fn relay_routed(&mut self, mut packet: Mbuf, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        match stack.admit(&mut packet, out) {
            Admission::Through(path) => {
                let departure = stack.depart(&mut packet, path, out);
                self.leave(packet, departure, out);
            }
            other => self.end_here(packet, other, out),
        }
    }

    /// Runs the network layer alone on a burst.
    pub(super) fn relay_all(&mut self, burst: &mut Burst, out: &mut Output) {
        for packet in &*burst {
            packet.prefetch();
        }
        self.refresh(out);
        for packet in burst.drain(..) {
            self.relay_routed(packet, out);
        }
    }

    /// Disposes of a packet that does not go to the chain.
    #[inline(never)]
    fn end_here(&mut self, mut packet: Mbuf, admission: Admission, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        if packet.mark() != 0 {
            note_admission(&packet, admission, out);
        }
        let departure = match admission {
            Admission::Through(path) | Admission::Back(path) => {
                stack.depart(&mut packet, path, out)
            }
            Admission::Consume => Departure::Consume,
            Admission::Drop(reason) => Departure::Drop(reason),
        };
        self.leave(packet, departure, out);
    }

    #[inline(always)]
    fn leave(&mut self, packet: Mbuf, departure: Departure, out: &mut Output) {
        if packet.mark() != 0 {
            note_departure(&packet, departure, self.stack.as_deref(), out);
        }
        match departure {
            Departure::Send(device) => out.send(device, packet),
            Departure::Hold(next) => {
                if let Some(stack) = &mut self.stack {
                    stack.hold(packet, next, out);
                }
            }
            Departure::Consume => out.consume(packet),
            Departure::Drop(reason) => out.drop(packet, reason),
        }
    }

    /// Sends a packet that a function made, which is addressed, on a device that the routes name.
    pub(super) fn send_own(&mut self, mut packet: Mbuf, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        let path = stack.own(packet.device());
        let departure = stack.depart(&mut packet, path, out);
        self.leave(packet, departure, out);
    }
}
