//! A connection as a shard keeps it: the protocol's state, and what is on its way to and from the application.

use rheostat_base::sync::prefetch::prefetch_for_write;
use rheostat_base::{DeviceId, Time};
use rheostat_ip::Path;
use rheostat_packet::FlowKey;
use rheostat_tcp::Connection;

use crate::application::Application;

/// A connection with everything that belongs to it.
pub(crate) struct Entry<A: Application> {
    /// The key of packets that arrive.
    pub(crate) key: FlowKey,
    /// The device they arrive on.
    pub(crate) device: DeviceId,
    /// The listener that accepted it.
    pub(crate) listener: u16,
    pub(crate) tcp: Connection,
    /// What it may hold to be sent.
    pub(crate) send_buffer: usize,
    pub(crate) route: KnownRoute,
    pub(crate) stream: Stream<A>,
    /// When something last went either way, for the idle timeout.
    pub(crate) active: Time,
    /// Bytes allocated for data that the budget was charged with.
    pub(crate) charged: usize,
}

/// Where packets of a connection go, as it was found out once.
#[derive(Clone, Copy)]
pub(crate) struct KnownRoute {
    pub(crate) path: Path,
    /// The network's changes it was found at: it holds until there are more.
    pub(crate) changes: u64,
}

/// What is between the application and TCP.
pub(crate) struct Stream<A: Application> {
    /// The application's part; none before the handshake is done.
    pub(crate) conn: Option<A::Conn>,
    /// What is under way; most connections have nothing, most of the time.
    pub(crate) pending: Option<Box<Pending<A>>>,
    pub(crate) phase: Phase,
    pub(crate) peer_finished: bool,
}

/// What of a connection is under way: between two of its turns in its place, during one with the lane.
pub(crate) struct Pending<A: Application> {
    /// Bytes read, of which the first `taken` were parts of requests.
    pub(crate) input: Vec<u8>,
    pub(crate) taken: usize,
    /// How many bytes the next request takes at least.
    pub(crate) needed: usize,
    /// A request that takes longer.
    pub(crate) request: Option<A::Request>,
    /// A reply that is not written completely.
    pub(crate) reply: Option<A::Reply>,
    /// Encoded bytes that the send buffer had no room for.
    pub(crate) output: Vec<u8>,
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

impl<A: Application> Entry<A> {
    /// Asks for what a segment touches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_for_write(&self.key);
        prefetch_for_write(&self.route);
        prefetch_for_write(&self.stream.phase);
        self.tcp.prefetch();
    }
}

impl<A: Application> Stream<A> {
    pub(crate) fn new() -> Stream<A> {
        Stream { conn: None, pending: None, phase: Phase::Opening, peer_finished: false }
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Bytes allocated for data.
    pub(crate) fn allocated(&self) -> usize {
        let of = |pending: &Pending<A>| pending.input.capacity() + pending.output.capacity();
        self.pending.as_deref().map_or(0, of)
    }
}

impl<A: Application> Pending<A> {
    pub(crate) fn new() -> Pending<A> {
        Pending {
            input: Vec::new(),
            taken: 0,
            needed: 0,
            request: None,
            reply: None,
            output: Vec::new(),
        }
    }

    /// Bytes read that no request has taken.
    pub(crate) fn unparsed(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Whether there is nothing.
    pub(crate) fn is_nothing(&self) -> bool {
        self.request.is_none()
            && self.reply.is_none()
            && self.output.is_empty()
            && self.unparsed().is_empty()
    }
}
