//! Segments that belong to no connection: some open one.

use rheostat_base::DropReason;
use rheostat_packet::Mbuf;
use rheostat_run::{Output, PacketInfo};
use rheostat_tcp::{Connection, Header, Segment, SendReason};

use super::TcpService;
use crate::budget::Refused;
use crate::connections::Connections;
use crate::driver::Driver;
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::index::tag_of;

/// Why a segment that no connection takes is not answered.
const NO_RESET: &str = "no reset: as many errors as may be have been sent lately";

impl<D: Driver> TcpService<D> {
    /// Accepts a connection, or answers a segment that can open none with a reset (RFC 9293, 3.10.7.1 and 3.10.7.2).
    ///
    /// # Errors
    /// Why the segment is dropped.
    pub(super) fn open(
        &mut self,
        packet: &Mbuf,
        info: &PacketInfo,
        segment: &Segment<'_>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let (now, key, device) = (out.now(), info.key(), packet.device());
        let ends = Ends::of(&key);
        let header = &segment.header;
        let listener = self.listeners.find(ends.local).filter(|_| !self.shared.is_draining());
        if self.noted.is_watched {
            let taker = if listener.is_some() { "a listener" } else { "no listener" };
            self.note_segment(&ends, (header, segment.payload.len()), taker, out);
        }
        let Some(listener) = listener else {
            self.refuse(&ends, packet, segment, out);
            return Err(DropReason::NoListener);
        };
        if !header.syn || header.ack.is_some() || header.rst || header.fin {
            self.refuse(&ends, packet, segment, out);
            let is_odd = header.syn && (header.rst || header.fin);
            return Err(if is_odd { DropReason::TcpInvalid } else { DropReason::NoConnection });
        }
        self.shared.budget.open(connections.memory()).map_err(|refused| match refused {
            Refused::HalfOpen => DropReason::HalfOpenLimit,
            Refused::Connections => DropReason::ConnectionLimit,
            Refused::Memory => {
                self.shared.note_scarcity();
                DropReason::ConnectionMemory
            }
        })?;
        let stack = &self.egress.stack;
        let config = self.listeners.settings(Some(listener), device, ends.remote.ip(), stack);
        let initial = self.shared.numbers.of(ends.local, ends.remote, now);
        let Some(mut tcp) = Connection::accept(config, initial, segment, now) else {
            self.shared.budget.end_handshake();
            self.shared.budget.close();
            return Err(DropReason::TcpInvalid);
        };
        tcp.set_memory(Some(connections.memory().clone()));
        let route = self.egress.route(ends.remote, device, now);
        tcp.set_path_mss(route.mss);
        let entry = Entry {
            key,
            device,
            listener: Some(listener),
            tcp,
            route,
            phase: Phase::Opening,
            peer_finished: false,
            stream: D::accept(),
            active: now,
            charged: 0,
            retransmitted: 0,
            tag: tag_of(info.hash),
        };
        self.counters.passive_opens.increment();
        if self.noted.is_watched {
            let words = "accepts the SYN; listen -> syn-received";
            self.note_words(words, Some(("listen", "syn-received")), out);
        }
        let slot = connections.insert(entry);
        self.advance(slot, connections, out);
        Ok(())
    }

    /// Sends a reset, at the rate at which errors may be sent.
    fn refuse(&mut self, ends: &Ends, packet: &Mbuf, segment: &Segment<'_>, out: &mut Output) {
        if let Some(reset) = Header::reset_for(segment)
            && self.egress.stack.may_report(out.now())
        {
            self.counters.resets_sent.increment();
            self.counters.segments_reset.increment();
            self.send_alone(ends, packet.device(), (&reset, SendReason::Reset), out);
        } else if self.noted.is_watched {
            let words = if segment.header.rst { "a reset is not answered" } else { NO_RESET };
            self.note_words(words, None, out);
        }
    }
}
