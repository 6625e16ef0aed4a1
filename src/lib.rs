//! The face of rheostat: what the author of a network function imports. For services of one's own, see
//! [`service`], and [`tcp`] for those over TCP.
//!
//! A network function is sequential code that sees one packet at a time. rheostat looks the packet's
//! flow up, hands the function its state as plain `&mut`, and runs it on every core, each flow on one of
//! them:
//!
//! ```
//! use rheostat::{Cx, DropReason, NetworkFunction, Outcome, Packet, Verdict};
//!
//! /// Counts the packets of every flow, and lets each flow have a thousand.
//! struct Quota;
//!
//! impl NetworkFunction for Quota {
//!     type Flow = u32; // per flow: packets
//!     type Shard = u64; // per shard: packets dropped
//!
//!     fn packet(&self, cx: &mut Cx<'_, u64>, _: &mut Packet<'_>, packets: &mut u32) -> Outcome<Verdict> {
//!         *packets += 1;
//!         let is_over = *packets > 1_000;
//!         *cx.shard() += u64::from(is_over);
//!         Ok(if is_over { Verdict::Drop(DropReason::QuotaExceeded) } else { Verdict::Forward })
//!     }
//! }
//!
//! // A hundred thousand packets of a synthetic mix, through a chain of this one function, on two lanes.
//! let mut layout = rheostat::StateLayout::new();
//! let chain = rheostat::Stage::new(Quota, &mut layout)?;
//! let mix = rheostat::MixConfig { packets: Some(100_000), flows: 100, ..Default::default() };
//! let mut counted = 0;
//! let report = rheostat::Harness::new(chain, layout)
//!     .run(rheostat::Mix::new(mix)?, |_, shard| counted += shard)?;
//! let dropped = report.counters.dropped[DropReason::QuotaExceeded as usize];
//! assert!(dropped > 0, "some flow had more than a thousand packets");
//! assert_eq!(report.counters.sent + dropped, 100_000);
//! assert_eq!(counted, dropped);
//! assert!(report.violations.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cases;
pub mod harness;
pub mod service;
pub mod settings;
pub mod tcp;

/// The guide's code, compiled and run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide.md")]
struct Guide;

/// Likewise that of its page about state that lanes share.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide-shared.md")]
struct GuideShared;

/// Likewise that of its page about programs.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide-program.md")]
struct GuideProgram;

/// Likewise that of the rules for functions, and that code which breaks them does not compile.
#[cfg(doctest)]
#[doc = include_str!("../docs/function-rules.md")]
struct FunctionRules;

/// Likewise that of the guide to services over TCP.
#[cfg(doctest)]
#[doc = include_str!("../docs/guide-tcp.md")]
struct GuideTcp;

/// The README's code, likewise.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use harness::Harness;
pub use rheostat_app::App;
pub use rheostat_base::{
    Counter, DeviceId, DropReason, DropReasonError, Nanos, OwnDropReason, ShardId, Time,
};
pub use rheostat_functions::Firewall;
pub use rheostat_functions::firewall::FirewallConfig;
pub use rheostat_nf::registry::{
    BuildCx, BuildError, FixedKey, FlowPlace, FromSettings, FunctionFacts, Handed, Registration,
    Rule, RuleCount, RuleCounters, RuleList, RuleUse, Tally,
};
pub use rheostat_nf::{
    Abort, Admission, Ahead, AnyChain, Chain, Chain2, Cx, DynamicChain, Ending, FunctionSpec,
    ListCx, ListMethods, Lists, NetworkFunction, Outcome, Packet, Prefetch, ShardInfo, ShardState,
    Stage, Steady, Verdict,
};
pub use rheostat_nf::{ChainError, Link, link, shared_link};
pub use rheostat_packet::{FlowKey, Headers, wire};
pub use rheostat_run::listing::ListedFields;
pub use rheostat_run::{Metrics, Unusual};
pub use rheostat_settings::{declared, settings};
pub use rheostat_state::StateLayout;
pub use rheostat_state::object::{Allocator, Distributed, Full, Lease, Map, Vector};
pub use rheostat_state::txn::{Objects, Plain, Transactional};
pub use rheostat_steer::{Fields, PacketSet, Protocols, Side, Whose};
pub use rheostat_traffic::{
    Arrival, Attack, AttackConfig, AttackKind, Limited, Mix, MixConfig, Source, SourceError,
};
pub use serde;
