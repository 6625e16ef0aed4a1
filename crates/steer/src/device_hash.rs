//! The hash that a network interface computes, for the simulated one.

use rheostat_base::DeviceId;
use rheostat_packet::{FlowKey, HashKind, Tuple};

use crate::steering::Steering;

/// What the interface hashes beyond addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HashOptions {
    /// Fragments and ICMP on their addresses alone, as most interfaces do: their packets then arrive
    /// on another lane than the one that owns their flow, and are handed over.
    #[default]
    AddressesOnly,
    /// ICMP queries on their identifier too.
    Full,
}

/// The hash of a packet that arrives on `device`, and what it covers. `outer` holds the packet's own
/// addresses, source first, which an ICMP error's tuple does not tell.
#[inline]
pub fn hash_packet(
    steering: &Steering,
    options: HashOptions,
    device: DeviceId,
    tuple: &Tuple,
    outer: Option<FlowKey>,
) -> (u32, HashKind) {
    let (key, kind) = match tuple {
        Tuple::Flow(key) => (Some(*key), kind_of(steering, key, options)),
        Tuple::Fragment(key, _) => (Some(*key), HashKind::Addresses),
        Tuple::IcmpError(_) | Tuple::None => (outer, HashKind::Addresses),
    };
    match key {
        Some(key) => (steering.hash(&steering.orient(device, key).key, kind), kind),
        None => (0, HashKind::None),
    }
}

fn kind_of(steering: &Steering, key: &FlowKey, options: HashOptions) -> HashKind {
    let icmp = matches!(key.protocol(), 1 | 58);
    match icmp && options == HashOptions::AddressesOnly {
        true => HashKind::Addresses,
        false => steering.kind_of(key),
    }
}
