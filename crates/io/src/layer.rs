//! Layers around a device.

pub mod fault;
pub mod impair;
pub mod layered;
pub mod ordered;
#[cfg(not(any(loom, shuttle)))]
pub mod reopen;
pub mod shared_receive;
