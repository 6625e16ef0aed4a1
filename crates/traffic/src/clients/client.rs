//! One client: as much of TCP as a link that loses nothing asks for.

use std::time::Duration;

use rheostat_base::Time;

use super::Reply;
use super::frame::{ACK, FIN, MSS, PSH, RST, Received, SYN, Sent};
use super::pattern;

/// Data of a segment, beside a time stamp.
const SEGMENT: u32 = MSS as u32 - 12;
/// After how long without an answer everything unanswered is sent again.
const STALLED: Duration = Duration::from_millis(300);
/// In-order segments that are acknowledged at once, if they hold this much data (RFC 9293, 3.8.6.3).
const ACKNOWLEDGED_AT_ONCE: u32 = 2 * SEGMENT;
/// How far the sequence numbers of a connection begin beyond those of the one before between the same ends.
const NEXT_CONNECTION: u32 = 1 << 20;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangePhase {
    /// There is none.
    Closed,
    /// The handshake goes on.
    Opening,
    /// Requests may be made.
    Open,
    /// We finish, and wait until the service has, too.
    Closing,
}

/// A client with its connection.
#[derive(Debug)]
pub(super) struct ExchangeClient {
    /// Its number, of which its ends follow.
    pub(super) number: u32,
    /// The hash of what it sends.
    pub(super) hash: u32,
    pub(super) phase: ExchangePhase,
    /// Whether a request is under way.
    pub(super) is_busy: bool,
    /// The queue that made it.
    pub(super) by: u16,
    /// Whether something is to be acknowledged at once, or a SYN or FIN to be sent.
    owes: bool,
    peer_finished: bool,
    /// By how much the service's windows are scaled.
    scale: u8,
    first: u32,
    /// The first byte that was not sent.
    next: u32,
    /// The first byte that is not acknowledged.
    unacknowledged: u32,
    /// Behind the last byte of the request.
    end: u32,
    /// Behind the last byte that the service takes.
    window_end: u32,
    peer_first: u32,
    /// The next byte of the service.
    expected: u32,
    /// As far as the service was told we have come.
    acknowledged: u32,
    /// The service's latest time stamp.
    stamp: u32,
    /// Bytes of the reply that are missing.
    missing: u32,
    requests: u32,
    /// When something was last sent or received, in microseconds.
    active: u32,
    /// When the request was due.
    due: Time,
}

/// What came of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExchangeOutcome {
    pub(super) opened: bool,
    pub(super) closed: bool,
    pub(super) reset: bool,
    /// The service finished before the client did.
    pub(super) finished_first: bool,
    pub(super) replied: bool,
    pub(super) data: bool,
    pub(super) damaged: bool,
    pub(super) repeated: bool,
    /// There is something to be sent now.
    pub(super) sends: bool,
    /// There is something to be acknowledged before long.
    pub(super) acknowledges: bool,
}

impl ExchangeClient {
    pub(super) fn new(number: u32, hash: u32) -> ExchangeClient {
        ExchangeClient {
            number,
            hash,
            phase: ExchangePhase::Closed,
            is_busy: false,
            by: 0,
            owes: false,
            peer_finished: false,
            scale: 0,
            first: number.wrapping_mul(0x9e37_79b9),
            next: 0,
            unacknowledged: 0,
            end: 0,
            window_end: 0,
            peer_first: 0,
            expected: 0,
            acknowledged: 0,
            stamp: 0,
            missing: 0,
            requests: 0,
            active: 0,
            due: Time::ZERO,
        }
    }

    /// Begins to open the connection.
    pub(super) fn open(&mut self, now: Time) {
        self.first = self.first.wrapping_add(NEXT_CONNECTION);
        (self.next, self.unacknowledged, self.end) = (self.first, self.first, self.first);
        (self.expected, self.acknowledged, self.stamp, self.requests) = (0, 0, 0, 0);
        (self.phase, self.owes, self.peer_finished) = (ExchangePhase::Opening, true, false);
        self.note_active(now);
    }

    /// Makes a request that was due at `due`: it is sent as soon as the connection is open.
    pub(super) fn request(&mut self, (bytes, reply): (u32, Reply), due: Time, by: u16, now: Time) {
        self.is_busy = true;
        (self.due, self.by) = (due, by);
        self.missing = match reply {
            Reply::Same => bytes,
            Reply::Bytes(bytes) => bytes,
        };
        self.requests += 1;
        if self.phase == ExchangePhase::Opening {
            // The first byte is behind the SYN.
            self.end = self.first.wrapping_add(1 + bytes);
        } else {
            self.end = self.end.wrapping_add(bytes);
        }
        self.note_active(now);
    }

    /// Requests made on this connection.
    pub(super) fn requests(&self) -> u32 {
        self.requests
    }

    /// When the latest request was due.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Ends our direction.
    pub(super) fn close(&mut self) {
        self.phase = ExchangePhase::Closing;
        self.owes = true;
    }

    /// Sends everything unanswered again, if it has been so for long. Returns whether there is something.
    pub(super) fn retry(&mut self, now: Time) -> bool {
        let waits = match self.phase {
            ExchangePhase::Opening | ExchangePhase::Closing => true,
            ExchangePhase::Open => {
                self.next != self.unacknowledged || self.missing > 0 && self.is_busy
            }
            ExchangePhase::Closed => false,
        };
        let since = micros(now).wrapping_sub(self.active);
        if !waits || u128::from(since) < STALLED.as_micros() {
            return false;
        }
        self.next = self.unacknowledged;
        self.owes = true;
        self.note_active(now);
        true
    }

    /// The next segment.
    pub(super) fn poll(&mut self, now: Time) -> Option<Sent> {
        match self.phase {
            ExchangePhase::Closed => return self.poll_acknowledgement(now),
            ExchangePhase::Opening => {
                if !std::mem::take(&mut self.owes) {
                    return None;
                }
                self.next = self.first.wrapping_add(1);
                return Some(self.segment(SYN, self.first, 0, now));
            }
            ExchangePhase::Open | ExchangePhase::Closing => {}
        }
        let room = self.window_end.wrapping_sub(self.next);
        let left = self.end.wrapping_sub(self.next);
        // What is behind the end is the FIN.
        if left > 0 && left < 1 << 30 && room > 0 && room < 1 << 31 {
            let len = left.min(SEGMENT).min(room);
            let flags = if len == left { PSH | ACK } else { ACK };
            let sequence = self.next;
            self.next = self.next.wrapping_add(len);
            self.owes = false;
            return Some(self.segment(flags, sequence, len as u16, now));
        }
        if self.phase == ExchangePhase::Closing && self.next == self.end {
            self.next = self.next.wrapping_add(1);
            self.owes = false;
            return Some(self.segment(FIN | ACK, self.end, 0, now));
        }
        self.poll_acknowledgement(now)
    }

    fn poll_acknowledgement(&mut self, now: Time) -> Option<Sent> {
        let owes = std::mem::take(&mut self.owes);
        owes.then(|| self.segment(ACK, self.next, 0, now))
    }

    /// Acknowledges what was received until `expected`, if that has not been done.
    pub(super) fn acknowledge(&mut self, expected: u32) -> bool {
        let is_late = expected.wrapping_sub(self.acknowledged).wrapping_sub(1) < 1 << 31;
        self.owes |=
            is_late && self.phase != ExchangePhase::Opening && self.phase != ExchangePhase::Closed;
        is_late
    }

    /// As far as it has received.
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }

    fn segment(&mut self, flags: u8, sequence: u32, len: u16, now: Time) -> Sent {
        self.acknowledged = self.expected;
        self.note_active(now);
        let acknowledged = if flags & SYN == 0 { self.expected } else { 0 };
        let stamp = (now.as_nanos() / 1_000_000) as u32;
        Sent { flags, sequence, acknowledged, stamp, echo: self.stamp, len }
    }

    /// Writes the data of a segment at this sequence number.
    pub(super) fn write(&self, sequence: u32, data: &mut [u8]) {
        let place = sequence.wrapping_sub(self.first).wrapping_sub(1);
        pattern::fill(self.number, place, data);
    }

    /// Takes a segment of the service.
    pub(super) fn handle(
        &mut self,
        segment: &Received<'_>,
        checks: bool,
        ack_at_once: bool,
        now: Time,
    ) -> ExchangeOutcome {
        let mut outcome = ExchangeOutcome::default();
        if segment.flags & RST != 0 {
            outcome.reset = self.phase != ExchangePhase::Closed;
            self.phase = ExchangePhase::Closed;
            self.owes = false;
            return outcome;
        }
        match self.phase {
            ExchangePhase::Closed => {
                // The answer to our last acknowledgement was lost.
                self.owes = segment.flags & FIN != 0;
                outcome.sends = self.owes;
                return outcome;
            }
            ExchangePhase::Opening => {
                let is_answer = segment.flags & (SYN | ACK) == SYN | ACK
                    && segment.acknowledged == self.first.wrapping_add(1);
                if is_answer {
                    self.establish(segment);
                    self.note_active(now);
                    (outcome.opened, outcome.sends) = (true, true);
                }
                return outcome;
            }
            ExchangePhase::Open | ExchangePhase::Closing => {}
        }
        self.note_acknowledged(segment, now);
        let sent = self.next != self.unacknowledged || self.end != self.next;
        outcome.sends = sent && self.window_end != self.next;
        let len = segment.data.len() as u32;
        if segment.flags & SYN != 0 || segment.sequence != self.expected {
            // A probe of the window, or of an idle peer, has no data that we miss.
            let behind = self.expected.wrapping_sub(segment.sequence);
            outcome.repeated = len > 0 && behind < 1 << 31;
            outcome.damaged = len > 0 && behind >= 1 << 31;
            self.owes |= len > 0 || segment.flags & (SYN | FIN) != 0;
            outcome.sends |= self.owes;
            return outcome;
        }
        self.stamp = segment.stamp;
        if len > 0 {
            self.note_active(now);
            outcome.data = true;
            let place = self.expected.wrapping_sub(self.peer_first).wrapping_sub(1);
            let is_right = !checks || pattern::matches(self.number, place, segment.data);
            outcome.damaged = !is_right || len > self.missing;
            self.expected = self.expected.wrapping_add(len);
            self.missing = self.missing.saturating_sub(len);
            outcome.replied = self.missing == 0 && self.is_busy;
            self.is_busy &= !outcome.replied;
            let unsaid = self.expected.wrapping_sub(self.acknowledged);
            self.owes |= ack_at_once || unsaid >= ACKNOWLEDGED_AT_ONCE;
            outcome.acknowledges = !self.owes;
            outcome.sends |= self.owes;
        }
        if segment.flags & FIN != 0 {
            self.expected = self.expected.wrapping_add(1);
            (self.owes, self.peer_finished, outcome.sends) = (true, true, true);
            outcome.finished_first = self.phase == ExchangePhase::Open;
            self.phase = ExchangePhase::Closing;
        }
        let has_finished = self.unacknowledged == self.end.wrapping_add(1);
        if self.phase == ExchangePhase::Closing && self.peer_finished && has_finished {
            (self.phase, outcome.closed) = (ExchangePhase::Closed, true);
        }
        outcome
    }

    fn establish(&mut self, segment: &Received<'_>) {
        self.phase = ExchangePhase::Open;
        self.scale = segment.scale;
        self.stamp = segment.stamp;
        self.peer_first = segment.sequence;
        self.expected = segment.sequence.wrapping_add(1);
        self.unacknowledged = segment.acknowledged;
        self.window_end = segment.acknowledged.wrapping_add(segment.window.into());
        self.owes = true;
        if self.end == self.first {
            self.end = self.next;
        }
    }

    fn note_acknowledged(&mut self, segment: &Received<'_>, now: Time) {
        if segment.flags & ACK == 0 {
            return;
        }
        let new = segment.acknowledged.wrapping_sub(self.unacknowledged);
        if new > self.next.wrapping_sub(self.unacknowledged) {
            return;
        }
        if new > 0 {
            self.note_active(now);
        }
        self.unacknowledged = segment.acknowledged;
        let window = u32::from(segment.window) << self.scale;
        self.window_end = segment.acknowledged.wrapping_add(window);
    }

    fn note_active(&mut self, now: Time) {
        self.active = micros(now);
    }
}

fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}
