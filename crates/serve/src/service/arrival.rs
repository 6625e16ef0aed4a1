//! What takes a segment: a connection, a half-open one, what is left of a closed one, or a listener.

use rheostat_base::DropReason;
use rheostat_packet::Mbuf;
use rheostat_run::{Output, PacketInfo};
use rheostat_tcp::{Segment, SendReason, TimeWaitOutcome};

use super::TcpService;
use crate::connections::{Connections, Found};
use crate::driver::Driver;
use crate::ends::Ends;
use crate::entry::Entry;

impl<D: Driver> TcpService<D> {
    /// Handles a segment for this machine. The connection is looked for in the slot `candidate` first.
    ///
    /// # Errors
    /// Why it is dropped.
    pub(super) fn handle_segment(
        &mut self,
        packet: &Mbuf,
        info: &PacketInfo,
        segment: &Segment<'_>,
        candidate: u32,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let now = out.now();
        let key = info.key();
        match connections.find_at(candidate, &key, info.hash) {
            Found::Live(slot, _) => {
                self.advance(slot, Some(segment), connections, out);
                Ok(())
            }
            Found::HalfOpen(slot, _) => {
                self.handle_half_open(slot, packet, segment, connections, out);
                Ok(())
            }
            Found::Closed(slot, closed) => {
                let outcome = closed.stub.handle_segment(segment, now);
                let (ends, device) = (Ends::of(&closed.key), closed.device);
                let answer = match outcome {
                    TimeWaitOutcome::Handled => closed.stub.poll_transmit(now),
                    TimeWaitOutcome::Reopen => None,
                };
                if self.noted.is_watched {
                    let header = (&segment.header, segment.payload.len());
                    self.note_time_wait(&ends, header, (outcome, answer.is_some()), out);
                }
                if outcome == TimeWaitOutcome::Reopen {
                    connections.remove(slot);
                    self.shared.budget.leave_time_wait();
                    return self.open(packet, info, segment, connections, out);
                }
                if let Some(header) = answer {
                    let ack = (&header, SendReason::Acknowledgement);
                    self.send_alone((&ends, device, None), ack, out);
                }
                Ok(())
            }
            Found::Nothing => self.open(packet, info, segment, connections, out),
        }
    }

    /// Passes a connection a segment.
    #[inline]
    pub(super) fn take_segment(
        &mut self,
        entry: &mut Entry<D::Stream>,
        segment: &Segment<'_>,
        out: &mut Output,
    ) {
        let now = out.now();
        if !segment.payload.is_empty() {
            entry.active = now;
        }
        let before = self.noted.is_watched.then(|| {
            entry.tcp.forget_challenge();
            entry.tcp.numbers()
        });
        match self.driver.reads_into(entry) {
            Some(read) => entry.tcp.handle_segment_reading(segment, read, now),
            None => entry.tcp.handle_segment(segment, now),
        };
        let ignored = entry.tcp.take_ignored();
        if let Some(why) = ignored {
            self.counters.ignored(why);
        }
        if let Some(before) = before {
            let decision = entry.tcp.decision(&before, ignored);
            let (ends, len) = (Ends::of(&entry.key), segment.payload.len());
            self.note_segment(&ends, (&segment.header, len), "a connection", out);
            self.note_decision(&decision, out);
        }
    }
}
