//! Configuration: TOML text becomes a checked [`Config`], or a [`Report`] of everything wrong with it,
//! each mistake with its line, the offending text and the fix.
//!
//! A [`Config`] runs nothing: it describes what is to be run, and the caller builds it. It is built once, by its check, and read only. What goes on during a run is
//! [`KernelFollower`], which keeps the routes of a network those of the kernel, [`LinkFollower`], which reports what happens to
//! interfaces, and [`Balancer`], which moves shards between lanes by a policy, and is driven by a thread, [`Balancing`].
//!
//! | file | what it does |
//! |---|---|
//! | `balance` | monitor, plan, apply: which lane owns which shard while a run goes on |
//! | `config` | one file per table: its settings, defaults and ranges |
//! | `load` | text and flags to a checked configuration |
//! | `comparison` | the differences between two configurations, by key |
//! | `in_place` | which keys a running instance can change |
//! | `overrides` | the command line's flags in place of the file's settings |
//! | `check` | contradictions between tables, and with the machine |
//! | `reference` | every section with its keys, from their declarations |
//! | `registry` | the kinds of functions that a configuration may name |
//! | `machine` | what a configuration refers to on a machine |

pub mod balance;
mod check;
pub mod comparison;
pub mod config;
mod in_place;
mod kernel_addresses;
pub mod kernel_follower;
mod kernel_resolver;
pub mod link_follower;
mod load;
pub mod machine;
pub mod overrides;
pub mod reference;
mod registry;

pub use balance::{
    Balance, BalanceBoard, Balancer, Balancing, BalancingChange, HeavyShare, Observation, Progress,
    Role, ShardMigrator,
};
pub use comparison::{Comparison, Difference};
pub use config::{MissingInput, Sections};
pub use in_place::InPlace;
pub use kernel_addresses::kernel_addresses;
pub use kernel_follower::{FollowedRoutes, KernelFollower};
pub use kernel_resolver::KernelResolver;
pub use link_follower::{LinkChange, LinkFollower, LinkHandler};
pub use load::{Config, LoadError};
pub use machine::{AnyMachine, CoreState, FileId, Machine, NoListener};
pub use overrides::{DeviceOverride, OverrideError, Overrides};
pub use reference::Reference;
pub use registry::Registry;
pub use rheostat_settings::{Finding, Report};
