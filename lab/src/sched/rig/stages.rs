//! When a request of a [`Probe`](crate::sched::probe::Probe) passed which stage, in ticks of the time-stamp counter.

use crate::sched::probe::ProbeMoments;

/// The moments of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    /// The lane has received it.
    pub(crate) received: u64,
    /// Parsing began.
    pub(crate) parsed: u64,
    /// What parsing took.
    pub(crate) parse: u32,
    /// From then until the application had it.
    pub(crate) handle: u32,
    /// From then until encoding began.
    pub(crate) encode: u32,
    /// The segment with its reply was handed over.
    pub(crate) sent: u64,
}

impl Stages {
    pub(super) fn new(received: u64, moments: ProbeMoments, sent: u64) -> Stages {
        let ProbeMoments { parsed, parse, handle, encode } = moments;
        Stages { received, parsed, parse, handle, encode, sent }
    }

    /// From when it was received until it is parsed.
    pub(crate) fn tcp_in(&self) -> u64 {
        self.parsed.saturating_sub(self.received)
    }

    /// What parsing took.
    pub(crate) fn parse(&self) -> u64 {
        self.parse.into()
    }

    /// From when it was parsed until the application had it, and until the reply is encoded: the ways to a member and back.
    pub(crate) fn ways(&self) -> u64 {
        u64::from(self.handle) + u64::from(self.encode)
    }

    /// From when its reply is encoded until it was handed over.
    pub(crate) fn tcp_out(&self) -> u64 {
        let parts = [self.parse, self.handle, self.encode].map(u64::from);
        let encoded = self.parsed + parts.iter().sum::<u64>();
        self.sent.saturating_sub(encoded)
    }
}
