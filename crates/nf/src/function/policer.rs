//! A policer.

pub mod meter;
pub mod quantity;
