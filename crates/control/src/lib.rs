//! Configuration: TOML text becomes a checked [`Config`], or a [`Report`] of everything wrong with it,
//! each mistake with its line, the offending text and the fix.
//!
//! Nothing here runs: a [`Config`] says what is to be run, and the caller builds it.
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
pub mod overrides;
mod quantity;
mod reader;
mod suggestion;

pub use config::{Config, LoadError, MissingInput};
pub use diagnostic::{Finding, Report};
pub use overrides::{DeviceOverride, OverrideError, Overrides};
