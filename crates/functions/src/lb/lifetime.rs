//! How far a flow has come, and how long it is remembered.
//!
//! A backend that answers directly is not heard here, so a flow's state is what the client's packets
//! tell, and those of the backend where they pass. That is enough to know how long to remember the flow:
//! whether segments are valid is for the backend to judge.

use std::time::Duration;

use rheostat_packet::wire::TcpFlags;

use super::config::Timeouts;

/// How far a flow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Only the packet that opened it was seen: it gives way when room is needed.
    #[default]
    Opening,
    /// The client has sent another packet: for TCP, one with an acknowledgement.
    Open,
    /// An end of a TCP connection has sent FIN.
    Closing,
    /// An end of a TCP connection has reset it.
    Closed,
}

/// What a packet means for its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The flow is in this phase now.
    To(Phase),
    /// The packet opens a new connection between the same endpoints.
    Anew,
}

impl Phase {
    /// The phase of a flow that opens with this packet.
    pub(super) fn opened_by(tcp: Option<TcpFlags>) -> Phase {
        match tcp {
            Some(flags) if flags.rst() => Phase::Closed,
            Some(flags) if flags.fin() => Phase::Closing,
            // Also in the middle of a connection that another instance had, or that was forgotten.
            _ => Phase::Opening,
        }
    }

    /// The flow after another packet.
    #[inline]
    pub(super) fn after(self, from_client: bool, tcp: Option<TcpFlags>) -> Step {
        let Some(flags) = tcp else {
            return Step::To(if from_client && self == Phase::Opening {
                Phase::Open
            } else {
                self
            });
        };
        let is_over = matches!(self, Phase::Closing | Phase::Closed);
        if flags.rst() {
            return Step::To(Phase::Closed);
        }
        if flags.syn() && from_client && !flags.ack() && is_over {
            return Step::Anew;
        }
        if flags.fin() && !is_over {
            return Step::To(Phase::Closing);
        }
        let confirms = from_client && flags.ack() && !flags.syn();
        Step::To(if self == Phase::Opening && confirms { Phase::Open } else { self })
    }

    /// How long a flow in this phase is remembered without a packet.
    #[inline]
    pub(super) fn lifetime(self, is_tcp: bool, timeouts: &Timeouts) -> Duration {
        match self {
            _ if !is_tcp => timeouts.udp,
            Phase::Opening => timeouts.tcp_opening,
            Phase::Open => timeouts.tcp_established,
            Phase::Closing => timeouts.tcp_closing,
            Phase::Closed => timeouts.tcp_closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: u8 = TcpFlags::SYN;
    const ACK: u8 = TcpFlags::ACK;
    const FIN: u8 = TcpFlags::FIN;
    const RST: u8 = TcpFlags::RST;

    /// The phase after segments, each from the client or not; `None` when one opens a new connection.
    fn after(opening: u8, segments: &[(bool, u8)]) -> Option<Phase> {
        let opened = Phase::opened_by(Some(TcpFlags(opening)));
        segments.iter().try_fold(opened, |phase, (from_client, flags)| {
            match phase.after(*from_client, Some(TcpFlags(*flags))) {
                Step::To(phase) => Some(phase),
                Step::Anew => None,
            }
        })
    }

    #[test]
    fn the_clients_acknowledgement_opens_a_connection() {
        assert_eq!(after(SYN, &[]), Some(Phase::Opening));
        assert_eq!(after(SYN, &[(true, SYN), (false, SYN | ACK)]), Some(Phase::Opening));
        assert_eq!(after(SYN, &[(false, SYN | ACK), (false, ACK)]), Some(Phase::Opening));
        assert_eq!(after(SYN, &[(true, ACK)]), Some(Phase::Open));
        // Taken up midway, it has to go on.
        assert_eq!(after(ACK, &[]), Some(Phase::Opening));
        assert_eq!(after(ACK, &[(true, ACK)]), Some(Phase::Open));
    }

    #[test]
    fn either_end_closes_it_and_a_syn_opens_another() {
        assert_eq!(after(SYN, &[(true, ACK), (true, FIN | ACK)]), Some(Phase::Closing));
        assert_eq!(after(SYN, &[(true, ACK), (false, FIN | ACK)]), Some(Phase::Closing));
        assert_eq!(after(SYN, &[(true, FIN | ACK), (true, ACK)]), Some(Phase::Closing));
        assert_eq!(after(SYN, &[(true, ACK), (false, RST)]), Some(Phase::Closed));
        assert_eq!(after(SYN, &[(true, ACK), (true, FIN), (false, RST)]), Some(Phase::Closed));
        assert_eq!(after(SYN, &[(true, ACK), (true, FIN), (true, SYN)]), None);
        assert_eq!(after(RST, &[(true, SYN)]), None);
        // In an open connection the backend challenges it (RFC 5961, section 4.2).
        assert_eq!(after(SYN, &[(true, ACK), (true, SYN)]), Some(Phase::Open));
        assert_eq!(after(FIN, &[(false, SYN)]), Some(Phase::Closing));
    }

    #[test]
    fn a_second_datagram_confirms_a_flow_of_udp() {
        let opened = Phase::opened_by(None);
        assert_eq!(opened.after(false, None), Step::To(Phase::Opening));
        assert_eq!(opened.after(true, None), Step::To(Phase::Open));
    }
}
