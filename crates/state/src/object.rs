//! Objects that all lanes share, for state that belongs to no flow (NFOS, section 4.5). They are made before the run,
//! from the [`Objects`](crate::txn::Objects) that its transactions go by, and used in a transaction, through `&self`.
//! Operations on several of them take effect together or not at all.
//!
//! Each knows why two operations on it conflict, and what its user can do about that ([`cause`]).
//!
//! ```
//! use rheostat_base::{LaneId, Time};
//! use rheostat_state::object::{Map, Vector};
//! use rheostat_state::txn::{Objects, Txn};
//!
//! let objects = Objects::new(1);
//! let ports: Map<u64, u32> = Map::new(&objects, "ports", 1_000);
//! let frames = Vector::new(&objects, "frames", [0_u64; 4]);
//!
//! let mut txn = Txn::new(&objects, LaneId(0));
//! txn.begin(Time::ZERO);
//! ports.set(&mut txn, 0x0200_0000_0001, 3)?.expect("there is room");
//! frames.update(&mut txn, 3, |frames| *frames += 1)?;
//! txn.commit()?;
//!
//! txn.begin(Time::ZERO);
//! assert_eq!(ports.get(&mut txn, &0x0200_0000_0001)?, Some(3));
//! assert_eq!(frames.read(&mut txn, 3)?, 1);
//! # Ok::<(), rheostat_state::txn::Abort>(())
//! ```

mod allocator;
pub mod cause;
mod distributed;
mod map;
mod recipe;
mod storage;
mod vector;

pub use allocator::{Allocator, Lease};
pub use cause::Cause;
pub use distributed::Distributed;
pub use map::{Full, Hashed, Map};
pub use recipe::Recipe;
pub use storage::{Boxed, Inline, Storage};
pub use vector::Vector;
