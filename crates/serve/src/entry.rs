//! A connection as a shard keeps it: the protocol's state, and what is on its way to and from the program.

use std::mem::offset_of;

use rheostat_base::{DeviceId, Time};
use rheostat_ip::Path;
use rheostat_packet::FlowKey;
use rheostat_tcp::Connection;

/// A connection with everything that belongs to it, in whole cache lines. What segments touch comes first.
#[repr(C, align(64))]
pub(crate) struct Entry<S> {
    /// The key of packets that arrive.
    pub(crate) key: FlowKey,
    pub(crate) phase: Phase,
    /// Where packets go.
    pub(crate) route: KnownRoute,
    /// When something last went either way, for the idle timeout.
    pub(crate) active: Time,
    /// Bytes allocated for data that the budget was charged with.
    pub(crate) charged: usize,
    /// Segments sent again that have been counted.
    pub(crate) retransmitted: u32,
    /// What the index has of the key's hash.
    pub(crate) tag: u32,
    /// The listener that accepted it; none if this end opened it.
    pub(crate) listener: Option<u16>,
    /// The device packets arrive on.
    pub(crate) device: DeviceId,
    pub(crate) peer_finished: bool,
    /// What the driver keeps for it.
    pub(crate) stream: S,
    pub(crate) tcp: Connection,
}

/// Where packets of a connection go, as it was found out once.
#[derive(Clone, Copy)]
pub(crate) struct KnownRoute {
    pub(crate) path: Path,
    /// The network's changes it was found at: it holds until there are more.
    pub(crate) changes: u64,
    /// Bytes of a segment, options of TCP included, with which a packet passes, as far as that is known.
    pub(crate) mss: u16,
}

/// How far the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake goes on.
    Opening,
    /// Requests are taken.
    Open,
    /// None is taken any more: the connection ends when what was written has been handed to TCP.
    Ending,
    /// We have finished, and discard what the peer sends until it finishes too, or until then: a reset for it would destroy what
    /// it has not read.
    Lingering(Time),
    /// TCP does the rest alone.
    Done,
}

impl<S> Entry<S> {
    /// Bytes of memory for its data: TCP's buffers, and what was charged besides.
    pub(crate) fn bytes(&self) -> usize {
        self.tcp.allocated() + self.charged
    }

    /// So many cache lines, the first ones, are what a segment of an open connection touches.
    pub(crate) const TOUCHED_LINES: usize =
        offset_of!(Self, tcp).div_ceil(64) + Connection::TOUCHED_LINES;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_touches_eleven_of_twelve_lines() {
        type Tested = Entry<[usize; 2]>;
        let own = [offset_of!(Tested, key), offset_of!(Tested, route), offset_of!(Tested, stream)];
        assert_eq!(own.map(|at| at / 64), [0, 1, 2]);
        assert_eq!((offset_of!(Tested, tcp), Tested::TOUCHED_LINES), (3 * 64, 11));
        assert_eq!(size_of::<Tested>(), 12 * 64);
        // No more for being optional: it is what a place has.
        assert_eq!(size_of::<Option<Tested>>(), size_of::<Tested>());
    }
}
