//! The pumped driver in an open loop: a NIC that needs no core and never sleeps.
//!
//! Arrivals are drawn ahead of time in compact form, by a thread or before the run ([`Drawing`]), in chunks that all
//! queues read:
//!
//! ```text
//!  source -> Drawer -> chunk -> chunk -> chunk -> ...      due time, bucket, length, head of the frame
//!                        |        |
//!            queue 0: Placement   |       due before now? my bucket then? a descriptor free then?
//!                     queue 1: Placement
//! ```
//!
//! A lane that polls places what was due since it polled last, in its own queue only, and writes only the packets that
//! it takes into buffers. [`Placement`] has the rule. What a queue holds and drops depends on when packets were due,
//! tables rewritten and descriptors given back, and not on which lane polls, or how late; a lane that was away for a while
//! finds its ring full and later packets dropped, as with a real NIC.
//!
//! Where a peer answers what the device sends ([`Answering`](super::answering::Answering)), its replies are placed among the
//! arrivals in the order of their times: of two due at once, the arrival first.
//!
//! Locks: a lane takes its queue's lock for a poll, and skips the poll if the lock is taken. A thread that rewrites the table
//! or stops the source takes the locks of all queues, and the change takes effect when it has them. A queue's lock is taken
//! before the drawer's; a thread that has the drawer's only tries queues' locks. That of the replies is taken last.

mod arrivals;
mod chunk_list;
mod drawer;
mod drawn;
mod monitor;
mod placement;
mod pump;
mod pumped_rx;
mod pumped_table;

pub use drawn::DrawnArrivals;

pub(super) use pump::Pump;
pub(super) use pumped_rx::PumpedRx;
pub(super) use pumped_table::PumpedTable;
