//! The Toeplitz hash with which network interfaces place packets on receive queues (Microsoft,
//! "RSS Hashing Functions").

use rheostat_packet::{Family, FlowKey, HashKind};

/// Bytes of a hash key: enough for two IPv6 addresses and two ports.
const KEY_BYTES: usize = 40;
/// Bytes of the longest input: two IPv6 addresses and two ports.
pub const INPUT_BYTES: usize = 36;

/// The secret of a Toeplitz hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey([u8; KEY_BYTES]);

impl HashKey {
    /// The key of the published verification suite. It is public: for tests only.
    pub const MICROSOFT: HashKey = HashKey([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);

    /// A key of random bytes, for devices whose fields can be exchanged on one side.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> HashKey {
        HashKey(bytes)
    }

    /// A key under which exchanging source and destination does not change the hash, for hardware that
    /// cannot exchange fields. It repeats 16 bits, so the hash has no more than 16 bits of entropy and
    /// an attacker can choose tuples that fall into one bucket.
    pub const fn symmetric() -> HashKey {
        let mut key = [0; KEY_BYTES];
        let mut i = 0;
        while i < KEY_BYTES {
            key[i] = if i % 2 == 0 { 0x6d } else { 0x5a };
            i += 1;
        }
        HashKey(key)
    }

    /// The 32 key bits that a set input bit adds to the hash.
    fn window(&self, bit: usize) -> u32 {
        let byte = bit / 8;
        let bits = (0..5).fold(0_u64, |bits, i| {
            bits << 8 | u64::from(self.0.get(byte + i).copied().unwrap_or(0))
        });
        (bits >> (8 - bit % 8)) as u32
    }
}

/// The hash under one key. Linear over XOR: the hash of a sum is the sum of the hashes.
#[derive(Clone)]
pub struct Toeplitz {
    /// What each value of each input byte adds.
    tables: Box<[[u32; 256]; INPUT_BYTES]>,
}

impl Toeplitz {
    /// Builds the tables of a key.
    pub fn new(key: &HashKey) -> Toeplitz {
        let mut tables = Box::new([[0; 256]; INPUT_BYTES]);
        for (position, table) in tables.iter_mut().enumerate() {
            for (value, entry) in table.iter_mut().enumerate() {
                *entry = (0..8)
                    .filter(|bit| value & (0x80 >> bit) != 0)
                    .fold(0, |hash, bit| hash ^ key.window(position * 8 + bit));
            }
        }
        Toeplitz { tables }
    }

    /// What each value of each input byte adds to the hash, for programs that compute it elsewhere. It reveals the key.
    pub fn tables(&self) -> &[[u32; 256]; INPUT_BYTES] {
        &self.tables
    }

    /// Hashes up to 36 bytes; what lies beyond does not count.
    #[inline]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u32 {
        self.tables
            .iter()
            .zip(bytes)
            .fold(0, |hash, (table, byte)| hash ^ table[usize::from(*byte)])
    }

    /// Hashes the addresses of a key, and its ports where `fields` names them, in network order:
    /// first address, second address, first port, second port.
    #[inline]
    pub fn hash_key(&self, key: &FlowKey, fields: HashKind) -> u32 {
        let words = key.raw();
        let ports = match fields {
            HashKind::None => return 0,
            HashKind::Addresses => None,
            HashKind::Ports => Some((key.first_port(), key.second_port())),
        };
        match key.family() {
            Family::V4 => {
                let mut input = [0; 12];
                input[..4].copy_from_slice(&(words[0] as u32).to_be_bytes());
                input[4..8].copy_from_slice(&((words[0] >> 32) as u32).to_be_bytes());
                self.hash_with_ports(&mut input, 8, ports)
            }
            Family::V6 => {
                let mut input = [0; 36];
                for (place, word) in [1, 0, 3, 2].into_iter().enumerate() {
                    input[place * 8..][..8].copy_from_slice(&words[word].to_be_bytes());
                }
                self.hash_with_ports(&mut input, 32, ports)
            }
        }
    }

    #[inline]
    fn hash_with_ports(&self, input: &mut [u8], at: usize, ports: Option<(u16, u16)>) -> u32 {
        let Some((first, second)) = ports else { return self.hash_bytes(&input[..at]) };
        input[at..at + 2].copy_from_slice(&first.to_be_bytes());
        input[at + 2..at + 4].copy_from_slice(&second.to_be_bytes());
        self.hash_bytes(input)
    }
}

impl std::fmt::Debug for Toeplitz {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The tables would give the key away.
        f.debug_struct("Toeplitz").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// The published verification suite: destination, source, hash with ports, hash without.
    #[test]
    fn agrees_with_the_published_ipv4_vectors() {
        let hash = Toeplitz::new(&HashKey::MICROSOFT);
        for (destination, source, ports, addresses) in [
            (("161.142.100.80", 1766), ("66.9.149.187", 2794), 0x51cc_c178, 0x323e_8fc2),
            (("65.69.140.83", 4739), ("199.92.111.2", 14230), 0xc626_b0ea, 0xd718_262a),
            (("12.22.207.184", 38024), ("24.19.198.95", 12898), 0x5c2b_394a, 0xd2d0_a5de),
            (("209.142.163.6", 2217), ("38.27.205.30", 48228), 0xafc7_327f, 0x8298_9176),
            (("202.188.127.2", 1303), ("153.39.163.191", 44251), 0x10e8_28a2, 0x5d18_09c5),
        ] {
            let end = |(address, port): (&str, u16)| (address.parse::<Ipv4Addr>().unwrap(), port);
            let key = FlowKey::v4(end(source), end(destination), 6, 0);
            assert_eq!(hash.hash_key(&key, HashKind::Ports), ports);
            assert_eq!(hash.hash_key(&key, HashKind::Addresses), addresses);
        }
    }

    #[test]
    fn agrees_with_the_published_ipv6_vectors() {
        let hash = Toeplitz::new(&HashKey::MICROSOFT);
        for (destination, source, ports, addresses) in [
            (
                ("3ffe:2501:200:3::1", 1766),
                ("3ffe:2501:200:1fff::7", 2794),
                0x4020_7d3d,
                0x2cc1_8cd5,
            ),
            (
                ("ff02::1", 4739),
                ("3ffe:501:8::260:97ff:fe40:efab", 14230),
                0xdde5_1bbf,
                0x0f0c_461c,
            ),
            (
                ("fe80::200:f8ff:fe21:67cf", 38024),
                ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251),
                0x02d1_feef,
                0x4b61_e985,
            ),
        ] {
            let end = |(address, port): (&str, u16)| (address.parse::<Ipv6Addr>().unwrap(), port);
            let key = FlowKey::v6(end(source), end(destination), 6, 0);
            assert_eq!(hash.hash_key(&key, HashKind::Ports), ports);
            assert_eq!(hash.hash_key(&key, HashKind::Addresses), addresses);
        }
    }

    proptest! {
        #[test]
        fn is_linear_over_xor(a: [u8; 36], b: [u8; 36], key: [u8; 40]) {
            let hash = Toeplitz::new(&HashKey::new(key));
            let sum: Vec<u8> = a.iter().zip(b).map(|(a, b)| a ^ b).collect();
            prop_assert_eq!(hash.hash_bytes(&a) ^ hash.hash_bytes(&b), hash.hash_bytes(&sum));
        }

        #[test]
        fn the_symmetric_key_ignores_the_direction(a: u32, b: u32, pa: u16, pb: u16) {
            let hash = Toeplitz::new(&HashKey::symmetric());
            let key = FlowKey::v4((a.into(), pa), (b.into(), pb), 17, 0);
            let there = hash.hash_key(&key, HashKind::Ports);
            prop_assert_eq!(there, hash.hash_key(&key.reversed(), HashKind::Ports));
        }
    }
}
