//! Layers around a device.

pub mod capture;
pub mod fault;
pub mod trace;
