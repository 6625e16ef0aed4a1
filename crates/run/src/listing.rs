//! Lists what the shards of a run hold while it goes on: flows, and entries of functions' own tables. A client begins a walk; each
//! lane looks at the shards that it has, some entries between packets, and each shard is looked at once, whichever lanes have it
//! meanwhile.

mod board;
mod fields;
mod handle;
mod record;
#[cfg(test)]
mod tests;
mod walk;

pub use board::{TooManyWalks, WALKS, WalkBoard};
pub use fields::{ListedFields, Value};
pub use handle::{WalkHandle, WalkResult};
pub use record::{EntryRecord, FlowRecord, FunctionFields, Record};
pub use walk::{FlowFilter, MOST_WAITING, Subject, Walk, WalkPlace, WalkRequest};
