//! Fragments for this machine: put together before they are looked at.

use rheostat_base::DropReason;
use rheostat_packet::{Headers, Mbuf};
use rheostat_run::Output;

use super::{Admission, Stack};
use crate::reassembly::{Reassembled, ReassemblyCounts};

impl Stack {
    /// What has become of the datagrams for this machine that arrived in fragments, in this lane.
    pub fn reassembly(&self) -> ReassemblyCounts {
        self.reassembler.counts()
    }

    /// Gives up datagrams whose fragments have been waited for, and tells their senders.
    pub(super) fn give_up_fragments(&mut self, out: &mut Output) {
        self.reassembler.expire(out.now());
        while let Some(late) = self.reassembler.poll_overdue() {
            self.complain_of_missing(&late.first, late.device, out);
        }
    }

    /// Takes a fragment for this machine. With the last one missing, the datagram stands in its place, as a packet of this
    /// machine's own, and the fragment is consumed; otherwise returns what is to become of the fragment.
    pub(super) fn reassemble(
        &mut self,
        packet: &mut Mbuf,
        headers: &Headers,
        l3: u8,
        out: &mut Output,
    ) -> Option<Admission> {
        let bytes = packet.to_vec();
        self.give_up_fragments(out);
        let whole = match self.reassembler.take(&bytes, headers, packet.device(), out.now()) {
            Reassembled::Held => return Some(Admission::Consume),
            Reassembled::Refused(reason) => return Some(Admission::Drop(reason)),
            Reassembled::Whole(whole) => whole,
        };
        let mut frame = bytes.get(..usize::from(l3)).unwrap_or_default().to_vec();
        frame.extend_from_slice(&whole);
        let Some(mut datagram) = out.originate(&frame) else {
            return Some(Admission::Drop(DropReason::FragmentsFull));
        };
        let wire_len = datagram.wire_len();
        datagram.describe_as(packet);
        datagram.set_wire_len(wire_len);
        out.consume(std::mem::replace(packet, datagram));
        None
    }
}
