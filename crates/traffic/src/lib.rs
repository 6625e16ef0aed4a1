//! Seeded traffic for simulated devices, captures and benchmarks, in open loops: a synthetic internet mix,
//! what is special over it (an elephant, a flash crowd, an attack), visitors of a service, IMIX, exchanges of unequal flows, and captures replayed; what changes
//! the rate of any of them; and the statistics that say what traffic is like. Endpoints that answer each other meet on a [`wire`].

pub mod attack;
pub mod clients;
pub mod echo_server;
pub mod elephant;
mod error;
pub mod exchanges;
pub mod flash_crowd;
mod frame;
pub mod imix;
pub mod limited;
pub mod merged;
pub mod mix;
pub mod picker;
mod poisson;
pub mod replay;
pub mod stamps;
pub mod stations;
pub mod statistics;
pub mod stepped;
mod usual;
mod visit;
pub mod visitors;
pub mod wire;

pub use attack::{Attack, AttackConfig, AttackKind};
pub use echo_server::EchoServer;
pub use elephant::{Elephant, ElephantConfig};
pub use error::SourceError;
pub use exchanges::{Exchanges, ExchangesConfig};
pub use flash_crowd::{FlashCrowd, FlashCrowdConfig};
pub use imix::{Imix, ImixConfig};
pub use limited::Limited;
pub use merged::Merged;
pub use mix::{Mix, MixConfig, MixError};
pub use picker::{Distribution, FlowPicker, tuple_of};
pub use replay::{CaptureReel, Recording, Reel, Replay, ReplayConfig};
pub use rheostat_io::{Arrival, Silence, Source};
pub use stamps::Stamps;
pub use stations::Stations;
pub use statistics::Statistics;
pub use stepped::{RateStep, Stepped};
pub use usual::Usual;
pub use visitors::{Visitors, VisitorsConfig};
