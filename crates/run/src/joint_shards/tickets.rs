//! The order in which packets enter joint shards.
//!
//! A lane keeps others from receiving until it has drawn a ticket for each packet that it has received, from the counter of the
//! packet's shard. So tickets of a shard are in the order of arrival of its packets, as far as these come from one receive queue. A
//! packet enters its shard when its ticket is due: when those before it have been processed.
//!
//! Nothing waits for ever: of all tickets that were drawn and are not done, the lowest of a shard is due, and its lane, which does
//! not wait for another shard while it has that packet, sees so.

use rheostat_base::ShardId;
use rheostat_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The tickets of all shards of a run.
#[derive(Debug)]
pub(crate) struct Tickets {
    shards: Vec<ShardTickets>,
    /// Whether a lane has panicked. It may have had tickets, which will never be done.
    is_broken: AtomicBool,
}

/// The tickets of a shard, in cache lines of their own. A lane that draws one enters the shard soon.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ShardTickets {
    /// The next to be drawn.
    next: AtomicU32,
    /// The one whose packet may enter the shard.
    due: AtomicU32,
}

impl Tickets {
    /// The tickets of so many shards.
    pub(crate) fn new(shards: usize) -> Tickets {
        let shards = (0..shards).map(|_| ShardTickets::default()).collect();
        Tickets { shards, is_broken: AtomicBool::new(false) }
    }

    /// Draws the next ticket of a shard.
    #[inline]
    pub(crate) fn draw(&self, id: ShardId) -> u32 {
        // Relaxed: the increment only has to be one step. Lanes that draw one after the other are ordered by the lock of the
        // receive queue, and so are their draws.
        self.shards[id.index()].next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether a packet with this ticket may enter the shard.
    #[inline]
    pub(crate) fn is_due(&self, id: ShardId, ticket: u32) -> bool {
        // Relaxed: `done` is called by the lane that has the shard, before it puts the shard back. A lane that sees its ticket
        // due and then takes the shard out of its cell takes what was put back behind that, since no other lane may enter.
        self.shards[id.index()].due.load(Ordering::Relaxed) == ticket
    }

    /// All packets with tickets before `due` were processed. Called by the lane that has the shard.
    #[inline]
    pub(crate) fn done(&self, id: ShardId, due: u32) {
        self.shards[id.index()].due.store(due, Ordering::Relaxed);
    }

    /// A lane panics.
    pub(crate) fn break_off(&self) {
        // Relaxed: lanes that wait look again and again.
        self.is_broken.store(true, Ordering::Relaxed);
    }

    /// Whether a lane has panicked, so that tickets that are not due may never be.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;
    use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
    use rheostat_base::sync::take_cell::TakeCell;

    use super::*;

    const SHARD: ShardId = ShardId(0);

    /// A queue of numbered packets of one shard, and the tickets of this shard.
    #[derive(Clone)]
    struct Reception {
        queue: Arc<FairLock<u32>>,
        tickets: Arc<Tickets>,
    }

    impl Reception {
        fn new() -> Reception {
            Reception::beside(&Arc::new(Tickets::new(1)))
        }

        /// A queue of its own for the shard of these tickets.
        fn beside(tickets: &Arc<Tickets>) -> Reception {
            Reception { queue: Arc::new(FairLock::new(0)), tickets: tickets.clone() }
        }

        /// Receives a packet, and draws its ticket under the lock of the queue.
        fn receive(&self) -> (u32, u32) {
            let mut access = FairAccess::new(self.queue.clone());
            let next = access.lock().expect("no lane panics");
            let packet = *next;
            *next += 1;
            let ticket = self.tickets.draw(SHARD);
            access.release();
            (packet, ticket)
        }
    }

    /// Waits until a packet's ticket is due, and processes it: its number is written down in the shard.
    fn process(tickets: &Tickets, cell: &TakeCell<Vec<u32>>, packet: u32, ticket: u32) {
        loop {
            if tickets.is_due(SHARD, ticket)
                && let Some(mut shard) = cell.take()
            {
                shard.push(packet);
                tickets.done(SHARD, ticket + 1);
                return cell.put_back(shard).expect("it was taken");
            }
            thread::yield_now();
        }
    }

    /// Tickets are in the order of the queue, whichever lanes receive. Fails when a ticket is drawn behind the release of the
    /// queue.
    #[test]
    fn tickets_are_in_the_order_of_the_queue() {
        loom::model(|| {
            let reception = Reception::new();
            let other = reception.clone();
            let other = thread::spawn(move || other.receive());
            let mine = reception.receive();
            for (packet, ticket) in [mine, other.join().unwrap()] {
                assert_eq!(packet, ticket);
            }
        });
    }

    /// Packets of two queues that go to one shard have different tickets. Fails when a ticket is drawn by a load and a store.
    #[test]
    fn tickets_of_two_queues_differ() {
        loom::model(|| {
            let one = Reception::new();
            let other = Reception::beside(&one.tickets);
            let other = thread::spawn(move || other.receive());
            let (_, mine) = one.receive();
            let (_, theirs) = other.join().unwrap();
            assert_eq!(mine + theirs, 1, "0 and 1");
        });
    }

    /// Packets enter in the order of their tickets, whichever lanes have them. Fails when a lane enters before its ticket is due.
    #[test]
    fn packets_enter_in_the_order_of_tickets() {
        loom::model(|| {
            let tickets = Arc::new(Tickets::new(1));
            let cell = Arc::new(TakeCell::new(Vec::new()));
            let (theirs, shared) = (tickets.clone(), cell.clone());
            let other = thread::spawn(move || process(&theirs, &shared, 11, 1));
            process(&tickets, &cell, 10, 0);
            other.join().unwrap();
            assert_eq!(cell.take(), Some(vec![10, 11]));
        });
    }

    /// All together: packets enter the shard in the order in which they were received, whichever lane received them. Fails when
    /// a ticket is drawn behind the release of the queue, and when a lane enters before its ticket is due.
    #[test]
    fn packets_enter_in_the_order_of_the_queue() {
        loom::model(|| {
            let reception = Reception::new();
            let cell = Arc::new(TakeCell::new(Vec::new()));
            let (theirs, shared) = (reception.clone(), cell.clone());
            let other = thread::spawn(move || {
                let (packet, ticket) = theirs.receive();
                process(&theirs.tickets, &shared, packet, ticket);
            });
            let (packet, ticket) = reception.receive();
            process(&reception.tickets, &cell, packet, ticket);
            other.join().unwrap();
            assert_eq!(cell.take(), Some(vec![0, 1]));
        });
    }
}
