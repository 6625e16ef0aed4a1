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
//! tables rewritten and descriptors given back, and not on who polls, or how late; so a lane that was away for a while
//! finds its ring full and what came after that dropped, as it would in front of a real NIC.
//!
//! Locks: a lane has its queue's for a poll and gives way if somebody else has it. Whoever rewrites the table or stops
//! the source takes those of all queues, and the moment when it has them is when the change holds. A queue's lock comes
//! before the drawer's; whoever has the drawer's only tries to get queues'.

mod arrivals;
mod chunk_list;
mod drawer;
mod drawing_thread;
mod drawn;
mod placement;
mod pump;
mod pumped_rx;
mod pumped_table;

pub use drawn::DrawnArrivals;

pub(super) use drawing_thread::DrawingThread;
pub(super) use pump::Pump;
pub(super) use pumped_rx::PumpedRx;
pub(super) use pumped_table::PumpedTable;
