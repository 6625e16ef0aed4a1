//! Replies to what a NIC sent, as one receive queue gets them, or a NIC that puts packets into rings.

use std::collections::VecDeque;
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_packet::{AllocError, Mbuf, PoolCache};

use super::replies::{Replies, Reply};

/// The replies of one receive queue, or of a NIC.
#[derive(Debug)]
pub(super) struct Answering {
    replies: Arc<Replies>,
    /// How far the queue has looked through all replies.
    looked: u64,
    /// Those that lead here and are not placed yet, in the order of their times.
    due: VecDeque<Reply>,
    /// Those that occupy a descriptor, in the order in which they are received.
    waiting: VecDeque<Reply>,
}

impl Answering {
    pub(super) fn new(replies: Arc<Replies>) -> Answering {
        Answering { replies, looked: 0, due: VecDeque::new(), waiting: VecDeque::new() }
    }

    /// Fetches the replies that are due before `before` and lead here, which `is_mine` states by their time and bucket.
    pub(super) fn fetch(&mut self, before: u64, is_mine: impl Fn(u64, usize) -> bool) {
        self.replies.take_due(before, &mut self.looked, is_mine, &mut self.due);
    }

    /// When the first of those that are fetched is due.
    #[inline]
    pub(super) fn first_due(&self) -> Option<u64> {
        self.due.front().map(|reply| reply.due)
    }

    /// The first of those that are fetched, if it is due before `before`.
    pub(super) fn pop_due(&mut self, before: u64) -> Option<Reply> {
        self.due.pop_front_if(|reply| reply.due < before)
    }

    /// A reply has a descriptor.
    pub(super) fn enqueue(&mut self, reply: Reply) {
        self.waiting.push_back(reply);
    }

    /// Writes the first reply that has a descriptor into a buffer.
    ///
    /// # Errors
    /// [`AllocError`] without buffers: the reply is gone.
    pub(super) fn receive(
        &mut self,
        device: DeviceId,
        pool: &mut PoolCache,
    ) -> Result<Mbuf, AllocError> {
        let reply = self.waiting.pop_front().expect("a reply for each descriptor that has one");
        reply.packet(device, pool)
    }

    /// Before when no reply arrives, if the present is `now`: packets that are sent from now on are answered later.
    pub(super) fn next_due(&self, now: u64) -> u64 {
        let unsent = now.saturating_add(self.replies.delay()).max(now.saturating_add(1));
        self.next_sent().map_or(unsent, |due| due.min(unsent))
    }

    /// When the next reply to a packet that was sent is due.
    pub(super) fn next_sent(&self) -> Option<u64> {
        self.first_due().or_else(|| self.replies.next_due(self.looked))
    }

    /// Whether no reply is under way, to whatever queue.
    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty() && self.replies.is_empty()
    }
}
