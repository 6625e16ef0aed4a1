//! The network layer before the chain and behind it, where devices have addresses: all packets of a batch are admitted before the
//! chain sees the first, and what the chain lets through departs for its next hop.

use std::sync::Arc;

use rheostat_base::{DeviceId, DropReason};
use rheostat_ip::{Admission, Departure, ErrorsAfterChain, Network, Path, Stack};
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::{Batch, Output};
use rheostat_steer::Side;

use super::ChainService;
use super::notes::{note_admission, note_departure};
use crate::chain::Chain;
use crate::verdict::{Outcome, Verdict};

impl<C: Chain> ChainService<C> {
    /// The same on a network: packets are routed by their destination, and leave
    /// for their next hop.
    #[must_use]
    pub fn with_network(mut self, network: Arc<Network>) -> ChainService<C> {
        // A chain without state changes no addresses.
        let after_chain = match self.is_stateful {
            true => ErrorsAfterChain::ThroughChain,
            false => ErrorsAfterChain::ToSender,
        };
        self.stack = Some(Box::new(Stack::new(network, after_chain)));
        self
    }

    /// What the network layer states about each packet of a batch before the chain sees it; nothing where there is no network
    /// layer. Those that do not go to the chain are no longer usual ones.
    #[inline(never)]
    pub(super) fn admit(&mut self, batch: &mut Batch, out: &mut Output) {
        self.admissions.clear();
        if let Some(last) = batch.found().last() {
            out.set_now(last.now);
        }
        self.refresh(out);
        let Some(stack) = &mut self.stack else { return };
        let (packets, infos, _) = batch.parts();
        stack.admit_burst(packets, infos, &mut self.admissions, out);
    }

    /// Forwards the first `count` packets of a batch, which the chain lets through and which had the places behind `from`.
    #[inline(never)]
    pub(super) fn depart_first(
        &mut self,
        mut count: usize,
        mut from: usize,
        batch: &mut Batch,
        out: &mut Output,
    ) {
        let mut egress = [DeviceId(0); BURST];
        while let Some(stack) = &self.stack
            && count > 0
        {
            let packets = &mut batch.parts().0[..count];
            let egress = stack.depart_burst(packets, &self.admissions[from..], &mut egress);
            let ready = egress.len();
            send_by_device(batch, egress, out);
            (from, count) = (from + ready, count - ready);
            if ready == BURST || count == 0 {
                // There may be more of them.
                continue;
            }
            batch.drain_first(1, |packet, info, _| {
                out.set_now(info.now);
                self.apply_verdict(packet, info.side(), from, Ok(Verdict::Forward), out);
            });
            (from, count) = (from + 1, count - 1);
        }
    }

    /// Forwards all packets of a batch: what a chain without functions does, between the network layer before it and behind it.
    pub(super) fn relay(&mut self, batch: &mut Batch, out: &mut Output) {
        if let Some(last) = batch.found().last() {
            out.set_now(last.now);
        }
        self.refresh(out);
        let Some(stack) = &mut self.stack else {
            return self.forward_by_device(batch.len(), batch, out);
        };
        stack.look_up_ways(batch.parts().0);
        let mut from = 0;
        while let Some(stack) = &mut self.stack {
            let (packets, infos, _) = batch.parts();
            let egress = stack.forward(from, packets, infos);
            let ready = egress.len();
            from += ready;
            send_by_device(batch, egress, out);
            if ready == BURST {
                // There may be more of them.
                continue;
            }
            if batch.is_empty() {
                return;
            }
            let others = batch.iter().skip(1).take_while(|info| !info.is_usual()).count();
            batch.drain_first(1 + others, |packet, info, _| {
                out.set_now(info.now);
                self.relay_general(packet, out);
            });
            from += 1 + others;
        }
    }

    /// Forwards a packet, whatever that takes.
    #[inline(never)]
    fn relay_general(&mut self, mut packet: Mbuf, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        match stack.admit(&mut packet, out) {
            Admission::Through(path) => self.depart(packet, path, out),
            other => self.end_here(packet, other, out),
        }
    }

    /// Lets packets leave that have waited for what other lanes learned in the meantime.
    #[inline]
    fn refresh(&mut self, out: &mut Output) {
        if let Some(stack) = &mut self.stack {
            stack.refresh(out);
        }
    }

    /// Does with a packet what the chain has decided, if the network layer let it through, and else what that has.
    #[inline(never)]
    pub(super) fn apply_routed_verdict(
        &mut self,
        packet: Mbuf,
        side: Side,
        admission: Admission,
        verdict: Outcome<Verdict>,
        out: &mut Output,
    ) {
        match (admission, verdict) {
            (Admission::Through(path), Ok(Verdict::Forward | Verdict::Send(_))) => {
                self.depart(packet, path, out);
            }
            (Admission::Through(path), Ok(Verdict::Drop(DropReason::NoMapping)))
                if path.leads_home() =>
            {
                self.deliver(packet, path, out);
            }
            (Admission::Through(_), verdict) => {
                self.apply_chain_verdict(packet, side, verdict, out);
            }
            (admission, _) => self.end_here(packet, admission, out),
        }
    }

    /// Sends a packet on for its next hop.
    #[inline(always)]
    fn depart(&mut self, mut packet: Mbuf, path: Path, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        let departure = stack.depart(&mut packet, path, out);
        self.leave(packet, departure, out);
    }

    /// Delivers a packet for the machine's own address that the chain has no mapping for: it is the machine's.
    #[cold]
    fn deliver(&mut self, mut packet: Mbuf, path: Path, out: &mut Output) {
        let Some(stack) = &mut self.stack else { return };
        let admission = match stack.deliver(&mut packet, path, out) {
            Admission::Drop(DropReason::NoListener) => Admission::Drop(DropReason::NoMapping),
            other => other,
        };
        self.end_here(packet, admission, out);
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
            // There is no transport beside a chain.
            Admission::Transport | Admission::TransportError => {
                Departure::Drop(DropReason::NoListener)
            }
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

/// Sends the packets at the front of a batch, one on each of these devices.
#[inline(always)]
fn send_by_device(batch: &mut Batch, mut egress: &[DeviceId], out: &mut Output) {
    while let Some(&device) = egress.first() {
        // Most bursts leave on one device.
        let run = egress.iter().take_while(|other| **other == device).count();
        batch.send_first(run, &mut out.sender(device));
        egress = &egress[run..];
    }
}

/// Whether the chain gets a packet: all without a network layer.
#[inline]
pub(super) fn goes_to_chain(admission: Option<&Admission>) -> bool {
    admission.is_none_or(|admission| matches!(admission, Admission::Through(_)))
}
