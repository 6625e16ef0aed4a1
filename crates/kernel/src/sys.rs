//! System calls that take unsafe code.

pub(crate) mod ethtool;
pub(crate) mod interface;
pub(crate) mod pause;
pub(crate) mod scheduling;
#[cfg(any(test, feature = "test-filters"))]
pub(crate) mod seccomp;
pub(crate) mod thread_clock;
