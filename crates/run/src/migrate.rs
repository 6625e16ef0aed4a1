//! Moving shards between lanes while packets arrive: nothing is lost or doubled, flows keep their order,
//! and no lane waits for another. `docs/migration.md` states why it works.
//!
//! Shard s moves from lane A to lane B:
//!
//! | step | thread | what |
//! |---|---|---|
//! | 1 | B | on [`Command::Expect`], holds from now on what devices place by the buckets of s |
//! | 2 | migrator | rewrites the devices' tables and waits until no packet is placed by the old ones |
//! | 3 | B and every other lane C | on [`Command::Redirect`], holds all packets of s from now on, or hands them to B, and notifies A by a `Redirected` message |
//! | 4 | A | on [`Command::Release`], goes on until all of these messages have come and all that waited in its queues is processed, then sends B the box, and every C a `Released` message |
//! | 5 | C | on this message, notifies B by a `Drained` message that it has what A had handed to it |
//! | 6 | B | on the box and all of these, processes what it has held, in order |
//!
//! | file | what it does |
//! |---|---|
//! | `ownership` | which owners one lane knows and what it waits for: the protocol, without packets |
//! | `release_stamps` | when shards left, in the stamps of devices |
//! | `hold` | packets that wait for their shard |
//! | `watermark` | whether everything has been received that waited at some moment |
//! | `mailbox` | commands from the migrator to a lane, and what the lane reports |
//! | `migrator` | the steps above, for many shards at once |

mod hold;
mod mailbox;
mod migrator;
#[cfg(all(test, loom))]
mod models;
mod ownership;
mod release_stamps;
mod watermark;

pub(crate) use hold::Hold;
pub use mailbox::{Command, Report};
pub(crate) use mailbox::{LaneMailbox, MigratorMailbox, mailbox};
pub use migrator::{Migrator, Move, MoveError};
pub(crate) use ownership::{Ownership, Place};
pub(crate) use release_stamps::ReleaseStamps;
pub(crate) use watermark::Watermark;
