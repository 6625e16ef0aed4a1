//! What is known of one neighbour.

use std::net::IpAddr;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::wire::MacAddress;

/// How sure it is that a neighbour is there (RFC 4861, section 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Its link address was requested, and it has not answered yet.
    Incomplete,
    /// It has answered a short while ago.
    Reachable,
    /// It may have gone; no request is sent before there is a packet for it.
    Stale,
    /// There was a packet for it; if nothing shows that it is there, it will be asked.
    Delay,
    /// It is being asked whether it is still there.
    Probe,
    /// Its link address was configured.
    Permanent,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct NeighbourEntry {
    pub(super) state: NeighbourState,
    /// Meaningless while the state is [`NeighbourState::Incomplete`].
    pub(super) mac: MacAddress,
    /// Questions asked so far in this state.
    pub(super) asked: u8,
    /// When something is to be done about it.
    pub(super) deadline: Time,
}

/// What lanes see of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    Nothing,
    Asked,
    Known { mac: MacAddress, stale: bool },
}

/// A neighbour as listings show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownNeighbour {
    /// The link that it is on.
    pub device: DeviceId,
    /// Its address.
    pub address: IpAddr,
    /// How sure it is that it is there.
    pub state: NeighbourState,
    /// Its link address, once it is known.
    pub mac: Option<MacAddress>,
    /// When the state was confirmed or changed last, or the last question was sent; `None` for one that was configured.
    pub since: Option<Time>,
}

impl NeighbourEntry {
    pub(super) fn visible(&self) -> Visible {
        match self.state {
            NeighbourState::Incomplete => Visible::Asked,
            state => Visible::Known { mac: self.mac, stale: state == NeighbourState::Stale },
        }
    }
}
