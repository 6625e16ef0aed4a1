//! Parts of flow keys.

use super::{Family, FlowKey, tail};

/// Which parts of a key count, as far as a mask of its words can express it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyParts {
    /// Leading bits of the first address, for IPv4 and for IPv6.
    pub first: [u8; 2],
    /// Leading bits of the second address, likewise.
    pub second: [u8; 2],
    /// The first port.
    pub first_port: bool,
    /// The second port.
    pub second_port: bool,
    /// The protocol.
    pub protocol: bool,
    /// The zone.
    pub zone: bool,
}

/// A mask for the words of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyMask {
    v4: [u64; 2],
    v6: [u64; 5],
}

impl KeyMask {
    /// The mask that leaves these parts.
    pub fn new(parts: &KeyParts) -> KeyMask {
        let port = |counts| if counts { u16::MAX } else { 0 };
        let tail = tail(
            port(parts.first_port),
            port(parts.second_port),
            if parts.protocol { u8::MAX } else { 0 },
            if parts.zone { u32::MAX } else { 0 },
        );
        let four = |bits: u8| u64::from(u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0));
        let six = |bits: u8| u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
        let (first, second) = (six(parts.first[1].min(128)), six(parts.second[1].min(128)));
        let addresses = four(parts.first[0].min(32)) | four(parts.second[0].min(32)) << 32;
        KeyMask {
            v4: [addresses, tail],
            v6: [first as u64, (first >> 64) as u64, second as u64, (second >> 64) as u64, tail],
        }
    }
}

impl FlowKey {
    /// The key with all else set to zero.
    #[inline(always)]
    #[must_use]
    pub fn masked(&self, mask: &KeyMask) -> FlowKey {
        let [first, second, ..] = self.words;
        // Apart, so that keys of IPv4 stay in registers.
        let words = match self.family {
            Family::V4 => [first & mask.v4[0], second & mask.v4[1], 0, 0, 0],
            Family::V6 => std::array::from_fn(|i| self.words[i] & mask.v6[i]),
        };
        FlowKey { words, family: self.family }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn what_a_mask_leaves_is_what_its_parts_name() {
        let (a, b) = (Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(192, 0, 2, 9));
        let key = FlowKey::v4((a, 1234), (b, 80), 6, 7);
        let none = Ipv4Addr::UNSPECIFIED;
        let parts = KeyParts { first: [32, 128], first_port: true, ..KeyParts::default() };
        let masked = key.masked(&KeyMask::new(&parts));
        assert_eq!(masked, FlowKey::v4((a, 1234), (none, 0), 0, 0));
        let parts =
            KeyParts { second: [24, 64], protocol: true, zone: true, ..KeyParts::default() };
        let masked = key.masked(&KeyMask::new(&parts));
        let net = Ipv4Addr::new(192, 0, 2, 0);
        assert_eq!(masked, FlowKey::v4((none, 0), (net, 0), 6, 7));

        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let (a, b) = (address("2001:db8:1:2:3::9"), address("fd00::5"));
        let key = FlowKey::v6((a, 1234), (b, 80), 6, 7);
        let parts = KeyParts { first: [32, 64], second_port: true, ..KeyParts::default() };
        let (net, none) = (address("2001:db8:1:2::"), Ipv6Addr::UNSPECIFIED);
        let masked = key.masked(&KeyMask::new(&parts));
        assert_eq!(masked, FlowKey::v6((net, 0), (none, 80), 0, 0));
        assert_eq!(key.masked(&KeyMask::new(&KeyParts::default())).raw(), &[0; 5]);
    }
}
