//! How commands print, end and keep lists, for programs with commands of their own, such as the laboratory.

pub use crate::kept_file::{KeepError, KeptFile, machine_key};
pub use crate::out::{line, usage};
