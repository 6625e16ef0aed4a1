//! The packets of one poll.

use arrayvec::ArrayVec;

use crate::Mbuf;

/// How many packets a poll takes at most.
pub const BURST: usize = 32;

/// The packets of one poll, in order of arrival.
pub type Burst = ArrayVec<Mbuf, BURST>;
