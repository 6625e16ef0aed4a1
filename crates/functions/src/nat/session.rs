//! What a NAT knows of a TCP connection: enough to tell how long it may be silent (RFC 5382, REQ-5;
//! RFC 7857, section 2, which follows RFC 6146, section 3.5.2.2). Sequence numbers are the business of
//! a firewall.

use rheostat_packet::wire::TcpFlags;
use rheostat_state::bytemuck::{Pod, Zeroable};

/// The state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(transparent)]
pub struct Session(u8);

const SENT: [u8; 2] = [1, 2];
const CLOSED: [u8; 2] = [4, 8];
const BOTH_SENT: u8 = SENT[0] | SENT[1];
const BOTH_CLOSED: u8 = CLOSED[0] | CLOSED[1];
const RESET: u8 = 16;

impl Session {
    /// Notes a segment with these flags, from inside or from outside.
    #[inline]
    pub fn note(&mut self, outbound: bool, flags: TcpFlags) {
        let way = usize::from(!outbound);
        if flags.rst() {
            self.0 |= RESET;
            return;
        }
        if flags.syn() && self.is_over() {
            // The endpoints use their ports again.
            self.0 = 0;
        }
        // Only an endpoint can tell whether a reset was right: what it sends on shows that it was not.
        self.0 = (self.0 & !RESET) | SENT[way];
        if flags.fin() {
            self.0 |= CLOSED[way];
        }
    }

    /// Whether both ends have sent and the connection is not over.
    #[inline]
    pub fn is_established(self) -> bool {
        self.0 & BOTH_SENT == BOTH_SENT && !self.is_over()
    }

    /// Whether both ends have closed it, and neither has reset it.
    #[inline]
    pub fn is_closed(self) -> bool {
        self.0 & (BOTH_CLOSED | RESET) == BOTH_CLOSED
    }

    /// Whether both ends have closed it, or one has reset it.
    #[inline]
    fn is_over(self) -> bool {
        self.0 & BOTH_CLOSED == BOTH_CLOSED || self.0 & RESET != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIN: u8 = TcpFlags::FIN;
    const SYN: u8 = TcpFlags::SYN;
    const RST: u8 = TcpFlags::RST;
    const ACK: u8 = TcpFlags::ACK;

    fn after(segments: &[(bool, u8)]) -> Session {
        let mut session = Session::default();
        segments.iter().for_each(|&(outbound, flags)| session.note(outbound, TcpFlags(flags)));
        session
    }

    #[test]
    fn a_connection_is_established_once_both_have_sent() {
        assert!(!after(&[(true, SYN)]).is_established());
        assert!(!after(&[(true, SYN), (true, SYN)]).is_established());
        assert!(after(&[(true, SYN), (false, SYN | ACK)]).is_established());
        assert!(after(&[(false, SYN), (true, SYN)]).is_established(), "simultaneous open");
    }

    #[test]
    fn it_is_over_once_both_have_closed_or_one_has_reset() {
        let open = [(true, SYN), (false, SYN | ACK), (true, ACK)];
        let with = |more: &[(bool, u8)]| after(&[&open, more].concat()).is_established();
        assert!(with(&[(true, FIN | ACK)]), "half closed");
        assert!(with(&[(true, FIN | ACK), (true, FIN | ACK)]), "sent again");
        assert!(!with(&[(true, FIN | ACK), (false, FIN | ACK)]));
        assert!(!with(&[(true, FIN | ACK), (false, FIN | ACK), (true, ACK)]));
        assert!(!with(&[(false, RST)]));
        assert!(with(&[(false, RST), (false, ACK)]), "the reset was not taken");
        let again = [(true, FIN), (false, FIN), (true, SYN)];
        assert!(!with(&again));
        assert!(with(&[&again[..], &[(false, SYN | ACK)]].concat()));
    }
}
