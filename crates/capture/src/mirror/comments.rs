//! What a service says about packets: comments for their copies.

use rheostat_packet::Mbuf;

use crate::Copied;

/// Comments that wait for a device to be offered their packets, at most. Beyond that, packets that were dropped before are
/// forgotten, and so are others.
const MOST: usize = 1_024;

/// Which packet is meant, while it is in the lane: where its data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Which(usize);

impl Which {
    pub(super) fn of(packet: &Mbuf) -> Which {
        Which(packet.data().as_ptr() as usize)
    }
}

/// Copies that wait for their comments until the end of the poll, and comments that wait for their copies.
#[derive(Default)]
pub(super) struct Comments {
    /// Whether the lane's service comments on packets. Otherwise no copy waits.
    pub(super) are_expected: bool,
    received: Vec<(usize, Which, Copied)>,
    sent: Vec<(Which, String)>,
}

impl Comments {
    /// Lets the copy of a received packet, for this capture, wait for a comment.
    pub(super) fn hold(&mut self, capture: usize, packet: &Mbuf, copy: Copied) {
        self.received.push((capture, Which::of(packet), copy));
    }

    /// The copies of a received packet that are complete with this comment, each with its capture.
    pub(super) fn complete(&mut self, packet: &Mbuf, text: &str) -> Vec<(usize, Copied)> {
        let which = Which::of(packet);
        let ready = self.received.extract_if(.., |(_, of, _)| *of == which);
        ready.map(|(capture, _, copy)| (capture, copy.with_comment(text.to_owned()))).collect()
    }

    /// The copies about which nothing was said, each with its capture.
    pub(super) fn rest(&mut self) -> Vec<(usize, Copied)> {
        self.received.drain(..).map(|(capture, _, copy)| (capture, copy)).collect()
    }

    /// Keeps a comment for the copy of a packet that is about to be sent.
    pub(super) fn keep(&mut self, packet: &Mbuf, text: String) {
        if self.sent.len() == MOST {
            self.sent.clear();
        }
        self.sent.push((Which::of(packet), text));
    }

    /// The comment on a packet that a device is offered.
    pub(super) fn take(&mut self, packet: &Mbuf) -> Option<String> {
        let which = Which::of(packet);
        // The latest: an older one may be of a packet that was dropped, whose buffer this is now.
        let place = self.sent.iter().rposition(|(of, _)| *of == which)?;
        Some(self.sent.swap_remove(place).1)
    }
}
