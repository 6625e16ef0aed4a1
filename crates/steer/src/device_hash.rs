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
/// addresses, source first, which an ICMP error's tuple does not contain.
#[inline]
pub fn hash_packet(
    steering: &Steering,
    options: HashOptions,
    device: DeviceId,
    tuple: &Tuple,
    outer: Option<FlowKey>,
) -> (u32, HashKind) {
    let (key, is_flow) = match tuple {
        Tuple::Flow(key) => (Some(*key), true),
        Tuple::Fragment(key, _) => (Some(*key), false),
        Tuple::IcmpError(_) | Tuple::None => (outer, false),
    };
    let Some(key) = key else { return (0, HashKind::None) };
    // Of a flow that is a single address, nothing else is left to be hashed.
    let key = steering.orient(device, key).key;
    let kind = if is_flow { kind_of(steering, &key, options) } else { HashKind::Addresses };
    (steering.hash(&key, kind), kind)
}

fn kind_of(steering: &Steering, key: &FlowKey, options: HashOptions) -> HashKind {
    let icmp = matches!(key.protocol(), 1 | 58);
    match icmp && options == HashOptions::AddressesOnly {
        true => HashKind::Addresses,
        false => steering.kind_of(key),
    }
}
