//! A device that is opened anew when its interface is back: its queues stay with their lanes, and what stands
//! behind them is exchanged.
//!
//! | step | thread | what |
//! |---|---|---|
//! | 1 | the follower of the interface | [`Reopener::let_go`]: nothing more arrives; lanes receive what has arrived, and what they send is left to them (`link_down`). A device that would be in the way of the next one ([`Device::is_exclusive`](crate::Device::is_exclusive)) is closed: lanes exchange its queues, as below, for those of a vacancy, to which nothing comes |
//! | 2 | the same | [`Reopener::reopen`]: opens the device with the placement of the old one, and offers each lane new queues |
//! | 3 | each lane | has received everything from its old queues, and takes the new ones |
//! | 4 | the follower | closes the old device |
//!
//! Counters go on from where they were. A lane pays a relaxed load per empty poll, and an uncontended lock per
//! burst that it sends.

mod device;
mod exchange;
mod monitor;
mod table;
mod vacancy;

pub use device::{ReopenableDevice, Reopener};
