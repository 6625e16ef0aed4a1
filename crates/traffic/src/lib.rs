//! Seeded traffic: a synthetic internet mix for simulated devices and captures, flow pickers for
//! benchmarks, and the statistics that say what traffic is like.

mod frame;
pub mod mix;
pub mod picker;
pub mod source;
pub mod statistics;

pub use mix::{Mix, MixConfig, MixError};
pub use picker::{Distribution, FlowPicker, tuple_of};
pub use source::{Arrival, Source};
pub use statistics::Statistics;
