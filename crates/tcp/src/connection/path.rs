//! The size of packets that the path takes (RFC 1191; RFC 8201; RFC 5927, 7).

use super::Connection;
use crate::sequence::SequenceNumber;

/// No report makes segments smaller: what a path of 552 bytes leaves (IPv4's least here; that of IPv6 is larger).
pub const MIN_PATH_MSS: u16 = 512;

/// What a report of a router has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReport {
    /// Segments are smaller from now on, and what was dropped is sent again.
    Lowered,
    /// Segments are no larger than that already.
    Unchanged,
    /// It quotes no segment that is in flight: a forged one, or an old one.
    Implausible,
}

impl Connection {
    /// Handles an ICMP error that says that a segment was too big. `quoted` is the sequence number in the quoted header, `mss`
    /// what a packet that passes has beside the headers of IP and TCP (options of TCP included). It is believed only if the
    /// segment is in flight. One report costs one more transmission of what is in flight at most, and the size never falls
    /// below [`MIN_PATH_MSS`].
    pub fn handle_too_big(&mut self, quoted: SequenceNumber, mss: u16) -> PathReport {
        let (una, next) = (self.sender.una(), self.sender.next());
        if self.state.is_opening()
            || self.state.is_over()
            || quoted.is_before(una)
            || !quoted.is_before(next)
        {
            return PathReport::Implausible;
        }
        let mss = u32::from(mss.max(MIN_PATH_MSS));
        if mss >= self.sender.mss() {
            return PathReport::Unchanged;
        }
        self.sender.on_too_big(quoted, mss);
        PathReport::Lowered
    }

    /// Sets what the path is known to take, from the next segment on: what other connections to the peer have found out, or a
    /// larger size after a while. Segments never exceed what was agreed on in the handshake.
    pub fn set_path_mss(&mut self, mss: u16) {
        self.sender.set_path_mss(mss.max(MIN_PATH_MSS).into());
    }
}
