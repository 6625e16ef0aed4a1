//! Configuration: TOML text becomes a checked [`Config`], or a [`Report`] of everything wrong with it,
//! each mistake with its line, the offending text and the fix.
//!
//! A [`Config`] runs nothing: it says what is to be run, and the caller builds it. What runs is
//! [`KernelFollower`], which keeps the routes of a network those of the kernel.
//!
//! | file | what it does |
//! |---|---|
//! | `document` | text to a TOML document, with all errors of syntax |
//! | `reader` | a document's keys to typed values, with all that do not fit |
//! | `config` | one file per table: its settings, defaults and ranges |
//! | `overrides` | the command line's flags in place of what the file says |
//! | `check` | contradictions between tables |
//! | `diagnostic` | what is said about all of it |

mod check;
pub mod config;
pub mod diagnostic;
mod document;
mod findings;
pub mod kernel_follower;
pub mod overrides;
mod quantity;
mod reader;
mod suggestion;

pub use config::{Config, LoadError, MissingInput};
pub use diagnostic::{Finding, Report};
pub use kernel_follower::KernelFollower;
pub use overrides::{DeviceOverride, OverrideError, Overrides};
