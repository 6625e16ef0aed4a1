//! What an author measures with: packets from memory and back, chains on lanes between, the times of stages, rows and
//! their files, and comparisons of two builds in turn.
//!
//! Every figure stands beside that of the same loop without the thing measured: see [`nf`].

pub mod ab;
pub mod allocation;
mod calibration;
pub mod confidence;
pub mod error;
pub mod machine;
pub mod memory;
pub mod nf;
pub mod quantiles;
pub mod record;
pub mod rounding;

pub use error::MeasureError;
