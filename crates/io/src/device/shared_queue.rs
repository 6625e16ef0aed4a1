//! A receive queue that several lanes share.

use std::sync::Arc;

/// The descriptor of a shared queue below which lanes may claim.
pub type ClaimBound = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The sharing of a receive queue, as one of the lanes uses it. Every method has a default for queues that are not shared in its way.
pub trait SharedQueue {
    /// Lets other lanes receive, where the lane has excluded them since [`super::RxQueue::recv`] in order to do what depends on the
    /// order of arrival. A lane calls it after it has classified the packets and before it processes any.
    ///
    /// Returns how many packets the last `recv` has brought within the reach of other lanes, which nothing else announces to them.
    fn release(&mut self) -> usize {
        0
    }

    /// From now on, other lanes than the one that sends through the transmit queue beside this one receive from it: `recv`
    /// does nothing for that transmit queue. [`super::RxQueue::rest`] is called by that lane alone.
    fn leave_transmit(&mut self) {}

    /// The number of descriptors of a queue from which any of its lanes gets any packet; `None` where lanes do not share
    /// descriptors.
    fn descriptors(&mut self) -> Option<u64> {
        None
    }

    /// Descriptors that lanes have claimed so far.
    fn claimed(&mut self) -> u64 {
        0
    }

    /// The descriptors (first, end) of the packets that were received last, counted over all lanes; `None` if there were none.
    fn latest_claim(&mut self) -> Option<(u64, u64)> {
        None
    }

    /// Keeps claims below what `bound` returns.
    fn bound_claims(&mut self, _bound: ClaimBound) {}
}
