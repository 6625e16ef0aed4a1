//! What is left of a connection that both ends have closed (RFC 9293, 3.10.7.4; RFC 1337; RFC 6191).

use std::time::Duration;

use rheostat_base::Time;

use crate::connection::ChallengeLimit;
use crate::options::Options;
use crate::receive::Stamps;
use crate::segment::{Header, Segment};
use crate::sequence::SequenceNumber;

/// What to do about a segment for a closed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWaitOutcome {
    /// Nothing but what [`TimeWait::poll_transmit`] yields.
    Handled,
    /// The segment is a SYN that begins a new connection between the same ends: forget this one and accept it.
    Reopen,
}

/// A closed connection. It answers what is still under way in place of the connection, whose memory may go.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    expires: Time,
    limit: ChallengeLimit,
    stamps: Option<Stamps>,
    next: SequenceNumber,
    expected: SequenceNumber,
    /// Twice the maximum segment lifetime, in milliseconds.
    lifetime: u32,
    window: u16,
    is_ack_due: bool,
}

// A server has many of them.
const _: () = assert!(size_of::<TimeWait>() <= 64);

impl TimeWait {
    pub(crate) fn new(
        (next, expected, window): (SequenceNumber, SequenceNumber, u16),
        stamps: Option<Stamps>,
        is_ack_due: bool,
        lifetime: Duration,
        now: Time,
    ) -> TimeWait {
        TimeWait {
            expires: now + lifetime,
            limit: ChallengeLimit::default(),
            stamps,
            next,
            expected,
            lifetime: lifetime.as_millis().min(u32::MAX.into()) as u32,
            window,
            is_ack_due,
        }
    }

    /// When it may be forgotten.
    pub fn deadline(&self) -> Time {
        self.expires
    }

    /// Answers a segment. Resets are ignored (RFC 1337).
    pub fn handle_segment(&mut self, segment: &Segment<'_>, now: Time) -> TimeWaitOutcome {
        let header = &segment.header;
        if header.rst {
            return TimeWaitOutcome::Handled;
        }
        if header.syn && header.ack.is_none() && !header.fin && self.is_newer(header, now) {
            return TimeWaitOutcome::Reopen;
        }
        if header.fin && segment.range().end == self.expected {
            // The peer has not got our acknowledgement.
            self.expires = now + Duration::from_millis(self.lifetime.into());
            self.is_ack_due = true;
        } else if !segment.range().is_empty() {
            self.is_ack_due |= self.limit.permits(self.next.0, now);
        }
        TimeWaitOutcome::Handled
    }

    /// Whether a SYN cannot be an old one (RFC 6191, 2): with stamps the number counts only where they are equal.
    fn is_newer(&self, header: &Header, now: Time) -> bool {
        let has_later_number = header.seq.is_after(self.expected);
        match (self.stamps, header.options.timestamps) {
            (Some(stamps), Some(theirs)) if stamps.is_old(theirs, now) => false,
            (Some(stamps), Some(theirs)) => stamps.is_earlier_than(theirs) || has_later_number,
            _ => has_later_number,
        }
    }

    /// The acknowledgement that is due, if one is.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Header> {
        std::mem::take(&mut self.is_ack_due).then(|| Header {
            seq: self.next,
            ack: Some(self.expected),
            window: self.window,
            options: Options {
                timestamps: self.stamps.as_mut().map(|stamps| stamps.stamp(now)),
                ..Options::default()
            },
            ..Header::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Timestamps;

    const NEXT: SequenceNumber = SequenceNumber(1_000);
    const EXPECTED: SequenceNumber = SequenceNumber(5_000);

    fn stub() -> TimeWait {
        let mut stub =
            TimeWait::new((NEXT, EXPECTED, 100), None, true, Duration::from_secs(60), Time::ZERO);
        assert!(stub.poll_transmit(Time::ZERO).is_some());
        stub
    }

    fn handle(stub: &mut TimeWait, header: Header, at: u64) -> TimeWaitOutcome {
        stub.handle_segment(&Segment { header, payload: &[] }, Time::from_secs(at))
    }

    #[test]
    fn with_stamps_a_syn_opens_a_new_connection_by_its_stamp_and_by_its_number_if_that_is_equal() {
        let earlier = EXPECTED - 100;
        let later = EXPECTED + 1;
        for (value, seq, outcome) in [
            (501, earlier, TimeWaitOutcome::Reopen),
            (501, later, TimeWaitOutcome::Reopen),
            (500, earlier, TimeWaitOutcome::Handled),
            (500, later, TimeWaitOutcome::Reopen),
            (499, later, TimeWaitOutcome::Handled),
        ] {
            let stamps = Some(Stamps::new(0, 500, Time::ZERO));
            let lifetime = Duration::from_secs(60);
            let numbers = (NEXT, EXPECTED, 100);
            let mut stub = TimeWait::new(numbers, stamps, false, lifetime, Time::ZERO);
            let timestamps = Some(Timestamps { value, echo: 0 });
            let options = Options { timestamps, ..Options::default() };
            let syn = Header { seq, syn: true, options, ..Header::default() };
            assert_eq!(handle(&mut stub, syn, 1), outcome, "{value} {seq:?}");
        }
        // The peer offers no stamps any more.
        let stamps = Some(Stamps::new(0, 500, Time::ZERO));
        let lifetime = Duration::from_secs(60);
        let mut stub = TimeWait::new((NEXT, EXPECTED, 100), stamps, false, lifetime, Time::ZERO);
        let syn = |seq| Header { seq, syn: true, ..Header::default() };
        assert_eq!(handle(&mut stub, syn(earlier), 1), TimeWaitOutcome::Handled);
        assert_eq!(handle(&mut stub, syn(later), 1), TimeWaitOutcome::Reopen);
    }

    #[test]
    fn a_repeated_fin_is_acknowledged_and_starts_the_wait_anew() {
        let mut stub = stub();
        let fin = Header { seq: EXPECTED - 1, fin: true, ack: Some(NEXT), ..Header::default() };
        assert_eq!(handle(&mut stub, fin, 30), TimeWaitOutcome::Handled);
        let answer = stub.poll_transmit(Time::from_secs(30)).unwrap();
        assert_eq!((answer.seq, answer.ack), (NEXT, Some(EXPECTED)));
        assert_eq!(stub.deadline(), Time::from_secs(90));
    }

    #[test]
    fn a_reset_does_not_end_the_wait() {
        let mut stub = stub();
        let reset = Header { seq: EXPECTED, rst: true, ..Header::default() };
        assert_eq!(handle(&mut stub, reset, 1), TimeWaitOutcome::Handled);
        assert_eq!(stub.deadline(), Time::from_secs(60));
        assert!(stub.poll_transmit(Time::from_secs(1)).is_none());
    }

    #[test]
    fn a_syn_with_a_later_number_opens_a_new_connection_and_an_old_one_is_acknowledged() {
        let mut stub = stub();
        let syn = |seq| Header { seq, syn: true, ..Header::default() };
        assert_eq!(handle(&mut stub, syn(EXPECTED - 100), 1), TimeWaitOutcome::Handled);
        assert_eq!(stub.poll_transmit(Time::from_secs(1)).unwrap().ack, Some(EXPECTED));
        assert_eq!(handle(&mut stub, syn(EXPECTED + 1), 1), TimeWaitOutcome::Reopen);
    }
}
