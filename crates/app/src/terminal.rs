//! How commands print, end and keep lists, for the commands of the laboratory.

pub use crate::interrupt::set as set_when_interrupted;
pub use crate::kept_file::{KeepError, KeptFile, machine_key};
pub use crate::out::{line, usage};
