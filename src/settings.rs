//! Settings of functions in a configuration: quantities with units for types that serde reads
//! (`#[serde(deserialize_with = "rheostat::settings::duration")]`), and types that read their keys themselves ([`Section`]).

pub use rheostat_settings::reader::convert;
pub use rheostat_settings::section::quantity::{bit_rate, count, duration, packet_rate, size};
pub use rheostat_settings::{Finding, Findings, Section, Table, Value};
