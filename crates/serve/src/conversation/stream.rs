//! What is between the application and TCP.

use crate::application::Application;

/// What is between the application and TCP.
pub(crate) struct Stream<A: Application> {
    /// The application's part; none before the handshake is done.
    pub(crate) conn: Option<A::Conn>,
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

impl<A: Application> Stream<A> {
    pub(crate) fn new() -> Stream<A> {
        Stream {
            conn: None,
            input: Vec::new(),
            taken: 0,
            needed: 0,
            request: None,
            reply: None,
            output: Vec::new(),
        }
    }

    /// Whether nothing is under way that was asked for.
    pub(crate) fn is_written(&self) -> bool {
        self.request.is_none() && self.reply.is_none() && self.output.is_empty()
    }

    /// Bytes read that no request has taken.
    pub(crate) fn unparsed(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_written() && self.unparsed().is_empty()
    }

    /// Bytes allocated for data.
    pub(crate) fn allocated(&self) -> usize {
        self.input.capacity() + self.output.capacity()
    }
}
