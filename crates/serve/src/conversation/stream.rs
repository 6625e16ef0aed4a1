//! What is between the application and TCP.

use rheostat_base::Time;

use super::replies::Replies;
use super::unwritten::Unwritten;
use crate::application::Application;
use crate::times::Timed;

/// What is between the application and TCP.
pub(crate) struct Stream<A: Application> {
    /// The application's part; none before the handshake is done.
    pub(crate) conn: Option<A::Conn>,
    /// What is under way; most connections have nothing, most of the time.
    pub(crate) pending: Option<Box<Pending<A>>>,
}

/// What of a connection is under way: between two of its turns in its place, during one with the lane.
pub(crate) struct Pending<A: Application> {
    /// Bytes read, if not all of them were parts of requests; the lane's buffer has them during the connection's first turn.
    pub(crate) input: Vec<u8>,
    /// How many of the bytes read were parts of requests.
    pub(crate) taken: usize,
    /// How many bytes the next request takes at least.
    pub(crate) needed: usize,
    /// When the first look was taken at a part of the next request; [`Time::NEVER`] before.
    pub(crate) since: Time,
    /// A request that takes longer.
    pub(crate) request: Option<A::Request>,
    /// A reply that is not written completely.
    pub(crate) reply: Option<A::Reply>,
    /// When the stages of that request ended, if it is timed.
    pub(crate) timed: Option<Box<Timed>>,
    /// Replies to requests that are handled apart.
    pub(crate) replies: Replies<(A::Reply, Option<Box<Timed>>)>,
    /// Whether no request is taken any more: the connection ends behind the last of those replies.
    pub(crate) is_last: bool,
    /// Encoded bytes that the send buffer had no room for.
    pub(crate) output: Unwritten,
    /// Whether a part of the reply has been encoded.
    pub(crate) has_begun: bool,
    /// Bytes of memory that the reply takes.
    pub(crate) reply_memory: usize,
}

impl<A: Application> Stream<A> {
    pub(crate) fn new() -> Stream<A> {
        Stream { conn: None, pending: None }
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Whether requests are being handled.
    pub(crate) fn awaits_replies(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.replies.are_awaited())
    }

    /// Since when a request has been arriving, if nothing else is under way; otherwise [`Time::NEVER`].
    pub(crate) fn arriving_since(&self) -> Time {
        let waits = self.pending.as_deref().filter(|pending| pending.is_nothing());
        waits.map_or(Time::NEVER, |pending| pending.since)
    }

    /// Bytes allocated for data.
    pub(crate) fn allocated(&self) -> usize {
        let of = |pending: &Pending<A>| {
            let replies = pending.reply_memory + pending.replies.memory();
            pending.input.capacity() + pending.output.allocated() + replies
        };
        self.pending.as_deref().map_or(0, of)
    }
}

impl<A: Application> Pending<A> {
    pub(crate) fn new() -> Pending<A> {
        Pending {
            input: Vec::new(),
            taken: 0,
            needed: 0,
            since: Time::NEVER,
            request: None,
            reply: None,
            timed: None,
            replies: Replies::new(),
            is_last: false,
            output: Unwritten::new(),
            has_begun: false,
            reply_memory: 0,
        }
    }

    /// Whether there is nothing but what was read.
    pub(crate) fn is_nothing(&self) -> bool {
        self.request.is_none()
            && self.reply.is_none()
            && self.replies.is_empty()
            && self.output.is_empty()
    }
}
