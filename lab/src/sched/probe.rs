//! An application that notes when a request reaches it: what lies between is what TCP takes.

use std::net::SocketAddr;

use rheostat_base::{Clock, LaneId};
use rheostat_serve::work::{WorkReply, WorkRequest};
use rheostat_serve::{Application, Encoded, Handled, Parsed, ReplyBuffer};

use super::rig::REQUEST;

/// Answers each request with its moments, in ticks of the time-stamp counter: `target` is when it was parsed, `took` the rest
/// ([`ProbeMoments`]), of each at most 2²¹ ticks.
pub(super) struct SchedProbe {
    pub(super) clock: Clock,
    /// How long it works on a request, in nanoseconds.
    pub(super) work: u64,
}

/// A request that was parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsing {
    number: u64,
    began: u64,
    ended: u64,
    /// When the application had it.
    handled: u64,
}

/// What a reply of the probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeMoments {
    /// When parsing began.
    pub(super) parsed: u64,
    /// How long it took.
    pub(super) parse: u32,
    /// From then until the application had it.
    pub(super) handle: u32,
    /// From then until the reply was encoded.
    pub(super) encode: u32,
}

const BITS: u32 = 21;
const MOST: u32 = (1 << BITS) - 1;

impl ProbeMoments {
    fn pack(self) -> (u64, u64) {
        let parts = [self.parse, self.handle, self.encode];
        let parts = parts.iter().fold(0, |all, part| all << BITS | u64::from((*part).min(MOST)));
        (self.parsed, parts)
    }

    pub(super) fn of(reply: &WorkReply) -> ProbeMoments {
        let part = |place: u32| (reply.took >> (BITS * place)) as u32 & MOST;
        ProbeMoments { parsed: reply.target, parse: part(2), handle: part(1), encode: part(0) }
    }
}

impl Application for SchedProbe {
    type Conn = ();
    type Worker = ();
    type Request = Parsing;
    /// `None` ends the connection.
    type Reply = Option<Parsing>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, _: &mut (), bytes: &[u8]) -> Parsed<Parsing, Option<Parsing>> {
        let began = self.clock.cycles().0;
        match WorkRequest::parse(bytes) {
            Ok(WorkRequest { number, length, .. }) => {
                let ended = self.clock.cycles().0;
                let request = Parsing { number, began, ended, handled: ended };
                Parsed::Request { request, len: length as usize, class: 0 }
            }
            Err(_) if bytes.len() < REQUEST => Parsed::Need(REQUEST),
            Err(_) => Parsed::Refuse(None),
        }
    }

    fn handle(&self, _: &mut (), request: Parsing) -> Handled<Parsing, Option<Parsing>> {
        let handled = self.clock.cycles();
        while self.work > 0 && self.clock.nanos_between(handled, self.clock.cycles()) < self.work {}
        Handled::Done(Some(Parsing { handled: handled.0, ..request }))
    }

    fn encode(
        &self,
        _: &mut (),
        reply: &mut Option<Parsing>,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded {
        let Some(Parsing { number, began, ended, handled }) = *reply else {
            return Encoded::Close;
        };
        let ticks = |from: u64, to: u64| u32::try_from(to.wrapping_sub(from)).unwrap_or(u32::MAX);
        let (parse, handle) = (ticks(began, ended), ticks(ended, handled));
        let encode = ticks(handled, self.clock.cycles().0);
        let (target, took) = ProbeMoments { parsed: began, parse, handle, encode }.pack();
        let length = REQUEST as u32;
        WorkReply { number, length, class: 0, target, took }.write(|bytes| out.put(bytes));
        Encoded::Done
    }
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn moments_pass_through_a_reply() {
        let moments = ProbeMoments { parsed: 1 << 60 | 5, parse: 77, handle: 1, encode: MOST };
        let (target, took) = moments.pack();
        let longer = ProbeMoments { encode: u32::MAX, ..moments };
        assert_eq!(longer.pack(), (target, took));
        let reply = WorkReply { number: 1, length: 128, class: 0, target, took };
        assert_eq!(ProbeMoments::of(&reply), moments);
    }

    #[test]
    fn a_request_is_answered_with_its_number() {
        let probe = SchedProbe { clock: Clock::new(), work: 0 };
        let mut sent = Vec::new();
        let request = WorkRequest { number: 9, length: 128, draw: 0, time: 0, class: 0 };
        request.write(|bytes| sent.extend_from_slice(bytes));
        let rehearsal = rheostat_serve::rehearse(&probe, &[&sent[..60], &sent[60..]]);
        let reply = WorkReply::parse(&rehearsal.said).unwrap();
        assert_eq!((reply.number, reply.length), (9, 128));
        assert!(ProbeMoments::of(&reply).parsed > 0);
    }
}
