//! Changes of network interfaces when they happen: one rtnetlink socket for all that are watched (RFC 3549;
//! rtnetlink(7)).
//!
//! A link is watched by its name, or by an alternative name (`ip link property add altname`). The kernel's
//! index of it is what changes when an interface is deleted and made anew.

mod links;
pub(crate) mod message;
mod watch;

pub use watch::LinkWatch;

/// What is known of a link that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// The kernel's number of the interface.
    pub index: u32,
    /// Its Ethernet address; `None` on a link of another kind.
    pub mac: Option<[u8; 6]>,
    /// The longest packet that it carries, in bytes, without the link header.
    pub mtu: u32,
    /// Whether an administrator has put it up.
    pub is_up: bool,
    /// Whether the other end is there (`ip link` shows `NO-CARRIER` otherwise). An interface that is not up
    /// has no carrier.
    pub has_carrier: bool,
}

/// What happened to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// No interface has the name any more: it was deleted, renamed, or moved to another namespace.
    Vanished,
    /// An interface has the name again, with another index or after [`LinkEvent::Vanished`]. The new state
    /// is told by this event alone: no [`LinkEvent::Mtu`] or [`LinkEvent::Up`] goes with it.
    Returned,
    /// Packets pass no longer: the interface was put down or has lost its carrier.
    Down,
    /// Packets pass again.
    Up,
    /// The MTU is now this, in bytes without the link header.
    Mtu(u32),
    /// The Ethernet address is now this.
    Address([u8; 6]),
}

impl LinkState {
    /// Whether packets pass.
    pub fn is_running(&self) -> bool {
        self.is_up && self.has_carrier
    }
}
