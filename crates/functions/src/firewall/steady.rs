//! The fast path of the firewall: open connections, and datagrams.

#[cfg(test)]
mod tests;

use rheostat_base::{Nanos, Time};

use super::Firewall;
use super::connection::{ACK, FIN, Phase, RST, SYN, Segment, Track};
use rheostat_nf::Packet;
use rheostat_nf::Steady;

/// What the fast path needs of the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFlows {
    tcp: Nanos,
    udp: Nanos,
    udp_unanswered: Nanos,
}

impl OpenFlows {
    pub(super) fn of(firewall: &Firewall) -> OpenFlows {
        let timeouts = &firewall.config.timeouts;
        OpenFlows {
            tcp: timeouts.tcp_established.into(),
            udp: timeouts.udp.into(),
            udp_unanswered: timeouts.udp_unanswered.into(),
        }
    }
}

impl Steady<Track> for OpenFlows {
    /// Whether the packet comes from the end that opened the flow, and its segment if it has one.
    type Step = (bool, Option<Segment>);

    fn shortest(&self) -> Nanos {
        self.tcp.min(self.udp).min(self.udp_unanswered)
    }

    /// Connections that are open, and datagrams once both ends have sent: what is half open counts against limits.
    #[inline(always)]
    fn may_leave(&self, state: &Track) -> bool {
        matches!(state.phase(), Phase::Established | Phase::Answered)
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &Track) -> Option<(bool, Option<Segment>)> {
        let from_opener = state.is_from_initiator(packet.is_forward());
        let Some(tcp) = packet.usual_tcp() else {
            return (!state.is_connection()).then_some((from_opener, None));
        };
        if tcp.flags() & (SYN | FIN | RST | ACK) != ACK {
            return None;
        }
        let segment = Segment {
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: ACK,
            window: tcp.window(),
            len: tcp.payload_len(),
            scale: None,
        };
        let continues = state.is_continued_by(from_opener, &segment);
        continues.then_some((from_opener, Some(segment)))
    }

    #[inline(always)]
    fn commit(
        &self,
        (from_opener, segment): (bool, Option<Segment>),
        now: Time,
        _: &mut Packet<'_>,
        state: &mut Track,
    ) -> Option<Time> {
        let lifetime = match segment {
            Some(segment) => {
                state.follow(from_opener, &segment);
                self.tcp
            }
            None => {
                state.note(from_opener);
                if state.phase() == Phase::Answered { self.udp } else { self.udp_unanswered }
            }
        };
        Some(now + lifetime)
    }
}
