//! What segments change.

use std::time::Duration;

use rheostat_base::Time;

use super::{Challenge, CloseReason, Connection, Event, Ignored, State, acceptance};
use crate::segment::{Header, Segment};
use crate::sequence::SequenceNumber;
use crate::time_wait::TimeWaitOutcome;

impl Connection {
    /// Handles a segment of this connection whose checksum is right.
    pub fn handle_segment(&mut self, segment: &Segment<'_>, now: Time) -> TimeWaitOutcome {
        self.handle(segment, None, now)
    }

    /// As [`Connection::handle_segment`], but bytes in order, where nothing is unread, are appended to `read`, as if they had been
    /// read at once: they are copied once, and take no memory of the connection's.
    pub fn handle_segment_reading(
        &mut self,
        segment: &Segment<'_>,
        read: &mut Vec<u8>,
        now: Time,
    ) -> TimeWaitOutcome {
        self.handle(segment, Some(read), now)
    }

    fn handle(
        &mut self,
        segment: &Segment<'_>,
        read: Option<&mut Vec<u8>>,
        now: Time,
    ) -> TimeWaitOutcome {
        match self.state {
            State::Closed => {}
            State::TimeWait => {
                if let Some(time_wait) = &mut self.time_wait {
                    return time_wait.handle_segment(segment, now);
                }
            }
            State::SynSent => self.handle_in_syn_sent(segment, now),
            _ => self.handle_in_order(segment, read, now),
        }
        TimeWaitOutcome::Handled
    }

    /// All states in which the peer's SYN has arrived (RFC 9293, 3.10.7.4), in the order of the RFC.
    fn handle_in_order(&mut self, segment: &Segment<'_>, read: Option<&mut Vec<u8>>, now: Time) {
        let header = &segment.header;
        if self.state == State::SynReceived && self.handle_repeated_syn(header, now) {
            return;
        }
        if header.syn && !header.rst {
            // Whatever its number and its stamp (RFC 5961, 4.2).
            self.ignore(Ignored::StraySyn);
            self.challenge(now);
            return;
        }
        let Some(echoed) = self.check_stamps(header, now) else { return };
        let next = self.receiver.next();
        let (window, mss) = (self.receiver.window(), self.receiver.mss());
        if !acceptance::is_in_window(segment.range(), next, window, mss) {
            self.handle_unacceptable(segment, now);
            return;
        }
        self.keep_alive.on_heard(now);
        if header.rst {
            self.handle_reset(header, now);
            return;
        }
        let Some(ack) = header.ack else {
            self.ignore(Ignored::NoAcknowledgement);
            return;
        };
        if let Some(pointer) = header.urgent
            && self.receiver.handle_urgent(header.seq, pointer)
        {
            self.events.push(Event::Urgent);
        }
        if self.handle_ack(segment, ack, echoed, now) {
            self.handle_data(segment, read, now);
        }
    }

    /// Whether the segment's stamps let it pass (RFC 7323, 3.2 and 5.3), and what they say about the round trip.
    fn check_stamps(&mut self, header: &Header, now: Time) -> Option<Option<Duration>> {
        let Some(stamps) = &self.stamps else { return Some(None) };
        if header.rst {
            return Some(None);
        }
        let Some(theirs) = header.options.timestamps else {
            self.ignore(Ignored::NoStamp);
            return None;
        };
        if stamps.is_old(theirs, now) {
            self.ignore(Ignored::OldStamp);
            self.challenge(now);
            return None;
        }
        Some(stamps.round_trip(theirs, now))
    }

    /// Nothing of the segment is in the window: acknowledged, so that the peer learns where we are. Without data that could go
    /// back and forth, and is limited.
    fn handle_unacceptable(&mut self, segment: &Segment<'_>, now: Time) {
        let range = segment.range();
        let is_past = !range.is_empty() && !range.end.is_after(self.receiver.next());
        self.ignore(match (segment.header.rst, is_past) {
            (true, _) => Ignored::ResetElsewhere,
            (false, true) => Ignored::Duplicate,
            (false, false) => Ignored::OutsideWindow,
        });
        if segment.header.rst {
            return;
        }
        if segment.range().is_empty() {
            self.challenge(now);
        } else {
            self.receiver.handle_outside(segment.header.seq, segment.payload.len() as u32);
        }
    }

    /// Only a reset at the number expected next resets (RFC 5961, 3).
    fn handle_reset(&mut self, header: &Header, now: Time) {
        if header.seq != self.receiver.next() {
            self.ignore(Ignored::ResetElsewhere);
            self.challenge(now);
        } else if self.state == State::SynReceived && self.is_active {
            self.end(CloseReason::Refused);
        } else {
            self.end(CloseReason::Reset);
        }
    }

    /// Returns whether the segment's data counts.
    fn handle_ack(
        &mut self,
        segment: &Segment<'_>,
        ack: SequenceNumber,
        echoed: Option<Duration>,
        now: Time,
    ) -> bool {
        let (una, next) = (self.sender.una(), self.sender.next());
        if self.state == State::SynReceived {
            if ack != una {
                self.ignore(Ignored::ImplausibleAcknowledgement);
                self.reset = Header::reset_for(segment).map(Box::new);
                return false;
            }
            self.establish(now);
        } else if !acceptance::is_plausible_ack(ack, una, next, self.oldest_ack(ack)) {
            self.ignore(Ignored::ImplausibleAcknowledgement);
            self.challenge(now);
            return false;
        }
        self.take_stamp(&segment.header, now);
        if ack.is_before(una) {
            return true;
        }
        let has_data = !segment.range().is_empty();
        self.sender.handle_ack(&segment.header, ack, has_data, echoed, (&self.config, now));
        if self.is_write_blocked && self.sender.has_room() {
            self.is_write_blocked = false;
            self.events.push(Event::Writable);
        }
        if self.sender.is_finished() {
            self.change_state(self.state.after_fin_acknowledged(), now);
        }
        !self.state.is_over()
    }

    /// How far behind what is acknowledged an acknowledgement may lie: a window of the peer (RFC 5961, 5.2), and no further than what
    /// was ever sent. A connection that has sent 4 GiB begins to count anew.
    fn oldest_ack(&self, ack: SequenceNumber) -> u32 {
        let una = self.sender.una();
        if !ack.is_before(una) {
            return 0;
        }
        self.sender.largest_window().min(una.since(self.initial.sequence + 1))
    }

    /// Takes the stamp of a segment to echo it (RFC 7323, 4.3): only once number and acknowledgement are acceptable. PAWS drops what
    /// has an older stamp, so that otherwise one forged segment, whose sender guesses the window alone, would shut the peer out.
    fn take_stamp(&mut self, header: &Header, now: Time) {
        if let (Some(stamps), Some(theirs)) = (&mut self.stamps, header.options.timestamps) {
            stamps.on_segment(theirs, header.seq, self.receiver.last_ack(), now);
        }
    }

    fn handle_data(&mut self, segment: &Segment<'_>, read: Option<&mut Vec<u8>>, now: Time) {
        if segment.range().is_empty() {
            return;
        }
        let end = segment.header.seq + segment.payload.len() as u32;
        if self.closing.is_detached
            && !self.receiver.is_finished()
            && end.is_after(self.receiver.next())
        {
            self.reset_peer();
            self.end(CloseReason::DataAfterClose);
            return;
        }
        let (seq, round_trip) = (segment.header.seq, self.sender.round_trip().smoothed());
        let received = self.receiver.handle_data(
            seq,
            (segment.payload, read),
            segment.header.fin,
            round_trip,
            (&self.config, now),
        );
        if let Some(why) = received.ignored {
            self.ignore(why);
        }
        if received.has_bytes {
            self.events.push(Event::Readable);
        }
        if received.is_finished {
            self.events.push(Event::PeerFinished);
            self.change_state(self.state.after_peer_fin(), now);
        }
    }

    /// Makes an acknowledgement due, unless one was for this reason a moment ago.
    fn challenge(&mut self, now: Time) {
        let is_sent = self.limit.permits(self.initial.stamp_offset, now);
        if is_sent {
            self.receiver.acknowledgement().on_immediate();
        }
        self.challenge = Some(if is_sent { Challenge::Sent } else { Challenge::Withheld });
    }
}
