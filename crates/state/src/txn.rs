//! Transactions on memory that lanes share: optimistic, all or nothing, and as if one ran after the other.
//!
//! Memory is made of *cells*. A cell has a word with its version, which is odd while a transaction writes, and data
//! (`slab.rs`). A transaction takes the time of a version clock when it begins and sees memory as it was then
//! (opacity: also a transaction that will not commit never sees half of another's writes). What it writes it keeps
//! to itself; [`Txn::commit`] locks the cells to be written, takes a new time, makes sure that what was read has not
//! changed, and writes. A lock or a newer version aborts it: no transaction waits for another lane,
//! except one that has been aborted often and runs alone (`gate.rs`).
//!
//! This is TL2 (Dice, Shalev and Shavit, "Transactional Locking II", 2006) with the snapshot extension of LSA
//! (Riegel, Felber and Fetzer, "A Lazy Snapshot Algorithm", 2006), and what NFOS (sections 4.4 to 4.7) needs to say
//! why a transaction was aborted: each access carries the operation it is part of and the line of code it came from.
//!
//! The orderings, by the names that comments use:
//!
//! | edge | from | to |
//! |---|---|---|
//! | *release* | the store of a cell's new version, `Release`, after its data | the load of the version before its data are read, `Acquire` |
//! | *lock* | the fence, `Release`, between locking a cell and writing its data | the fence, `Acquire`, between reading data and loading the version again |
//! | *time* | the increment of the clock, `AcqRel`, after locking | the same of another lane, before it looks at what it read |

#![allow(unsafe_code)]

mod abort;
mod access;
mod boxes;
mod commit;
#[cfg(all(test, shuttle))]
mod exploration;
mod gate;
mod memory;
#[cfg(all(test, loom))]
mod models;
mod objects;
mod profile;
mod quiescence;
mod read_set;
mod reading;
mod site;
mod slab;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod transaction;
mod version_clock;
mod word;
mod words;
mod write_set;

pub use abort::{Abort, Outcome};
pub use access::{Operation, Part};
pub use objects::{ObjectId, ObjectInfo, ObjectKind, Objects};
pub use profile::{Access, Conflict, ConflictCount, LaneProfile, Profile};
pub use site::Site;
pub use transaction::{Transactional, Txn};
pub use words::Plain;

pub(crate) use access::{Touch, detail_of};
pub(crate) use boxes::Boxed;
pub(crate) use slab::Slab;
pub(crate) use words::{Look, Words, WordsMut, load, store, words_of};
