//! What lanes share about flows and mappings, as plain data: it is read while others write it.

use std::net::Ipv4Addr;

use rheostat_packet::FlowKey;
use rheostat_state::bytemuck::{Pod, Zeroable};
use rheostat_state::object::Lease;
use rheostat_state::txn::Transactional;

use crate::nat::flow::{Endpoint, Ends};
use crate::nat::session::Session;

/// Which flow a packet belongs to: what its key holds, if it is of IPv4.
pub(super) type Name = [u64; 2];

/// The name that a key stands for. Keys of IPv6 have none here: they are not translated.
pub(super) fn name_of(key: &FlowKey) -> Name {
    let words = key.raw();
    [words[0], words[1]]
}

/// An endpoint inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Inner {
    address: u32,
    zone: u32,
    port: u16,
    protocol: u16,
}

impl Inner {
    pub(super) fn new((address, port): Endpoint, protocol: u8, zone: u32) -> Inner {
        Inner { address: address.to_bits(), zone, port, protocol: protocol.into() }
    }

    pub(super) fn end(&self) -> Endpoint {
        (Ipv4Addr::from_bits(self.address), self.port)
    }

    pub(super) fn zone(&self) -> u32 {
        self.zone
    }

    pub(super) fn protocol(&self) -> u8 {
        self.protocol as u8
    }
}

/// The lease of an external endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Place {
    pub(super) lease: Lease,
    /// Among all sets of ports.
    pub(super) set: u32,
}

/// What an external endpoint stands for. While it rests, it has no flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Mapping {
    pub(super) inner: Inner,
    /// Flows that inside has sent on.
    pub(super) kept_by: u32,
    /// Nanoseconds: no such flow lives longer.
    pub(super) until: u64,
    /// Flows that only outside has sent on.
    pub(super) unanswered: u32,
    unused: u32,
}

impl Mapping {
    /// A mapping without flows.
    pub(super) fn new(inner: Inner) -> Mapping {
        Mapping { inner, ..Mapping::zeroed() }
    }

    pub(super) fn flows(&self) -> u32 {
        self.kept_by + self.unanswered
    }

    /// Whether a flow that inside has sent on is alive.
    pub(super) fn is_kept(&self, cx: &mut impl Transactional) -> bool {
        self.until > cx.txn().now().as_nanos()
    }
}

/// The flow's packets pass as they are.
pub(super) const PASSED: u8 = 1;
/// The external endpoint is that of a mapping, which other flows share.
pub(super) const MAPPED: u8 = 2;
/// It keeps that mapping: inside has sent on it.
pub(super) const KEPT: u8 = 4;
/// The external endpoint is the flow's own, and counts against its host's quota.
pub(super) const OWN: u8 = 8;
/// The other end is inside, too.
pub(super) const TURNS_ROUND: u8 = 16;

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
pub(super) struct Flow {
    /// Nanoseconds: when its time began to run.
    pub(super) since: u64,
    /// The lease of its mapping.
    pub(super) place: Place,
    inner: u32,
    external: u32,
    remote: u32,
    zone: u32,
    inner_port: u16,
    external_port: u16,
    remote_port: u16,
    pub(super) protocol: u8,
    pub(super) flags: u8,
    pub(super) session: Session,
    /// Which time it has, by its number among [`Lifetime::ALL`](crate::nat::lifetime::Lifetime).
    pub(super) lifetime: u8,
    unused: u16,
}

impl Flow {
    /// A flow between these ends whose key in its own direction is `key`.
    pub(super) fn new(ends: Ends, key: &FlowKey, flags: u8) -> Flow {
        Flow {
            inner: ends.inner.0.to_bits(),
            external: ends.external.0.to_bits(),
            remote: ends.remote.0.to_bits(),
            zone: key.zone(),
            inner_port: ends.inner.1,
            external_port: ends.external.1,
            remote_port: ends.remote.1,
            protocol: key.protocol(),
            flags,
            ..Flow::zeroed()
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn ends(&self) -> Ends {
        Ends {
            inner: (Ipv4Addr::from_bits(self.inner), self.inner_port),
            external: (Ipv4Addr::from_bits(self.external), self.external_port),
            remote: (Ipv4Addr::from_bits(self.remote), self.remote_port),
        }
    }

    /// The endpoint inside, by which its mapping is found.
    pub(super) fn inner(&self) -> Inner {
        Inner::new(self.ends().inner, self.protocol, self.zone)
    }

    /// The names of its packets, from inside and from outside.
    pub(super) fn names(&self) -> [Name; 2] {
        let ends = self.ends();
        let keys =
            [ends.inner_key(self.protocol, self.zone), ends.external_key(self.protocol, self.zone)];
        keys.map(|key| name_of(&key))
    }
}
