//! The replies of a connection whose requests are handled apart, in the order of the requests.

use std::collections::VecDeque;

/// Replies that are awaited, and those that wait for earlier ones. Each has a *place*, which counts requests and wraps around.
#[derive(Debug)]
pub(crate) struct Replies<R> {
    /// The place of the first.
    first: u32,
    /// Replies, with the bytes of memory that each takes; none where the reply is awaited.
    places: VecDeque<Option<(R, usize)>>,
    awaited: u32,
    /// Bytes of memory that the replies take together.
    memory: usize,
}

impl<R> Replies<R> {
    /// No request is under way. Takes no memory.
    pub(crate) fn new() -> Replies<R> {
        Replies { first: 0, places: VecDeque::new(), awaited: 0, memory: 0 }
    }

    /// Requests whose replies have not been taken.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory that the replies take.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Whether requests are being handled.
    pub(crate) fn are_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Awaits the reply to one more request, and returns its place.
    pub(crate) fn expect(&mut self) -> u32 {
        let place = self.first.wrapping_add(self.places.len() as u32);
        self.places.push_back(None);
        self.awaited += 1;
        place
    }

    /// Puts a reply behind all others that needs no handling and takes `memory` bytes.
    pub(crate) fn push(&mut self, reply: R, memory: usize) {
        self.places.push_back(Some((reply, memory)));
        self.memory += memory;
    }

    /// Puts a reply that takes `memory` bytes into its place; gives it back where none is awaited.
    pub(crate) fn put(&mut self, place: u32, reply: R, memory: usize) -> Option<R> {
        let index = place.wrapping_sub(self.first) as usize;
        match self.places.get_mut(index) {
            Some(awaited @ None) => {
                *awaited = Some((reply, memory));
                self.awaited -= 1;
                self.memory += memory;
                None
            }
            Some(Some(_)) | None => Some(reply),
        }
    }

    /// The next reply in order, if it is here.
    pub(crate) fn pop(&mut self) -> Option<R> {
        let (reply, memory) = self.places.front_mut()?.take()?;
        self.places.pop_front();
        self.memory -= memory;
        self.first = self.first.wrapping_add(1);
        Some(reply)
    }

    /// Gives up all replies. Those that come are given back from then on.
    pub(crate) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.places.len() as u32);
        self.places.clear();
        (self.awaited, self.memory) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn replies_leave_in_the_order_of_requests_each_once(
            first in prop_oneof![Just(0_u32), Just(u32::MAX - 3), any::<u32>()],
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..100),
        ) {
            let mut replies = Replies { first, ..Replies::new() };
            let (mut awaited, mut requests, mut taken) = (Vec::new(), 0_u32, Vec::new());
            for (expects, which) in steps {
                if expects || awaited.is_empty() {
                    awaited.push((replies.expect(), requests));
                    requests += 1;
                } else {
                    let (place, request) = awaited.remove(which.index(awaited.len()));
                    prop_assert_eq!(replies.put(place, request, 10), None);
                    prop_assert_eq!(replies.put(place, request, 10), Some(request), "a second one");
                }
                while let Some(reply) = replies.pop() {
                    taken.push(reply);
                }
                let oldest = awaited.iter().map(|(_, request)| *request).min();
                prop_assert_eq!(taken.len() as u32, oldest.unwrap_or(requests), "no reply waits in vain");
                prop_assert!(taken.iter().copied().eq(0..taken.len() as u32));
                prop_assert_eq!(replies.are_awaited(), !awaited.is_empty());
                prop_assert_eq!(replies.memory(), 10 * (replies.len() - awaited.len()));
                prop_assert_eq!(replies.len(), requests as usize - taken.len());
            }
        }
    }

    #[test]
    fn what_is_given_up_is_not_taken_for_a_later_reply() {
        let mut replies = Replies::new();
        let (one, two) = (replies.expect(), replies.expect());
        replies.clear();
        let three = replies.expect();
        assert_eq!(
            [replies.put(one, 1, 9), replies.put(two, 2, 9), replies.put(three, 3, 9)],
            [Some(1), Some(2), None]
        );
        replies.push(4, 9);
        assert_eq!([replies.pop(), replies.pop(), replies.pop()], [Some(3), Some(4), None]);
    }
}
