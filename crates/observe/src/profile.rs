//! What keeps a run from scaling, and what to do about it: the causes of conflicts between transactions, ranked,
//! each with its recipe (NFOS, sections 4.6 and 6), and how evenly lanes have packets.

mod bottleneck;
mod rank;
mod scaling;
#[cfg(test)]
mod tests;
mod text;

pub use bottleneck::Bottleneck;
pub use scaling::{Observed, ScalingProfile};
