//! Hosts for the wire in virtual time, and what is noted about their sessions.

pub(crate) mod frame;
pub(crate) mod host;
pub(crate) mod session;
pub(crate) mod transcript;
pub(crate) mod windows;
