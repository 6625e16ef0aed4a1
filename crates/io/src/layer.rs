//! Layers around a device.

pub mod fault;
