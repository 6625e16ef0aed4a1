//! When a lane has received everything that waited for it at some moment.

use rheostat_io::RxQueue;

/// The end of what waited in each queue of a lane when the mark was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watermark(Vec<QueueEnd>);

/// Where what waits in a receive queue ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum QueueEnd {
    /// After so many packets received in all.
    Packets(u64),
    /// At these places of the rings of the queue.
    Rings(Vec<u64>),
}

impl Watermark {
    /// The mark of `queues`, which have brought as many packets as `received` states.
    pub(crate) fn new(queues: &[Box<dyn RxQueue>], received: &[u64]) -> Watermark {
        let marks =
            queues.iter().zip(received).map(|(queue, received)| match queue.order().rings {
                Some(rings) => QueueEnd::Rings(rings.ends()),
                None => QueueEnd::Packets(received + queue.backlog() as u64),
            });
        Watermark(marks.collect())
    }

    /// Whether all that waited has been received by now. A queue found empty has brought it, whatever
    /// the figures say: what waits below a device may be lost on the way up.
    pub(crate) fn has_passed(&self, queues: &[Box<dyn RxQueue>], received: &[u64]) -> bool {
        self.0.iter().zip(queues).zip(received).all(|((end, queue), received)| {
            let has_passed = match end {
                QueueEnd::Packets(mark) => received >= mark,
                QueueEnd::Rings(ends) => {
                    queue.order().rings.is_some_and(|rings| rings.has_read(ends))
                }
            };
            has_passed || queue.backlog() == 0
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {

    use rheostat_base::Time;
    use rheostat_io::{ArrivalOrder, RingProgress};
    use rheostat_packet::{Burst, PoolCache};

    use super::*;

    /// A queue that states what a test wants it to say.
    struct Says {
        backlog: usize,
        /// What it has read of its rings, if it has several.
        rings: Option<Vec<u64>>,
    }

    impl RxQueue for Says {
        fn recv(&mut self, _: &mut Burst, _: &mut PoolCache, _: Time) -> usize {
            unreachable!("no lane receives here")
        }

        fn backlog(&self) -> usize {
            self.backlog
        }

        fn order(&self) -> ArrivalOrder<'_> {
            let rings = self.rings.is_some().then_some(self as &dyn RingProgress);
            ArrivalOrder { rings, ..ArrivalOrder::default() }
        }
    }

    impl RingProgress for Says {
        fn ends(&self) -> Vec<u64> {
            self.rings.iter().flatten().map(|read| read + 10).collect()
        }

        fn has_read(&self, ends: &[u64]) -> bool {
            self.rings.iter().flatten().zip(ends).all(|(read, end)| read >= end)
        }
    }

    fn queue(backlog: usize, rings: Option<Vec<u64>>) -> Box<dyn RxQueue> {
        Box::new(Says { backlog, rings })
    }

    #[test]
    fn every_queue_must_have_brought_what_waited_in_it() {
        let mark = Watermark::new(&[queue(2, None), queue(0, None)], &[3, 4]);
        let full = [queue(1, None), queue(1, None)];
        assert!(!mark.has_passed(&full, &[4, 4]));
        assert!(mark.has_passed(&full, &[5, 4]));
        // A packet was lost below, and nothing waits any more.
        assert!(mark.has_passed(&[queue(0, None), queue(1, None)], &[4, 4]));
    }

    #[test]
    fn of_several_rings_each_must_have_been_read() {
        let mark = Watermark::new(&[queue(20, Some(vec![100, 0]))], &[7]);
        // As many packets were received as waited, but they came after, in the other ring.
        assert!(!mark.has_passed(&[queue(10, Some(vec![120, 0]))], &[27]));
        assert!(mark.has_passed(&[queue(10, Some(vec![110, 10]))], &[27]));
    }
}
