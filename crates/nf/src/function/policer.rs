//! A policer.

pub mod classes;
pub mod dscp;
pub mod marker;
pub mod meter;
pub mod quantity;
