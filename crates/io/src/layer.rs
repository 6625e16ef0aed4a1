//! Layers around a device.

pub mod capture;
pub mod fault;
#[cfg(not(any(loom, shuttle)))]
pub mod reopen;
pub mod trace;
