//! A wire in virtual time: two hosts, and a link with faults in each direction.

pub(crate) mod frame;
pub(crate) mod host;
pub(crate) mod link;
pub(crate) mod observer;
pub(crate) mod session;
