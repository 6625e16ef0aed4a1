//! The keyed hash that must come out the same on every instance of the load balancer.
//!
//! The shards' own hash is drawn at random in each process. This one depends on the configuration
//! alone, and without its seed no client can choose connections that go to one backend.

use rheostat_packet::{Family, FlowKey};

/// SipHash-2-4 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012) of words of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct KeyedHash {
    key: [u64; 2],
}

impl KeyedHash {
    pub(super) fn new(seed: u64) -> KeyedHash {
        // The second half of the key need only differ from the first; the seed is all there is to know.
        KeyedHash { key: [seed, seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15] }
    }

    /// The hash of `words`, each read as eight bytes, the lowest first.
    pub(super) fn words(&self, words: &[u64]) -> u64 {
        let [k0, k1] = self.key;
        // The initial state spells "somepseudorandomlygeneratedbytes".
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        // The last word holds the length of the message in bytes, modulo 256, in its highest byte.
        let end = (words.len() as u64) << 59;
        for word in words.iter().copied().chain([end]) {
            v[3] ^= word;
            (0..2).for_each(|_| round(&mut v));
            v[0] ^= word;
        }
        v[2] ^= 0xff;
        (0..4).for_each(|_| round(&mut v));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }

    /// The hash of a flow: addresses, ports and protocol. The zone does not count, because another
    /// instance may see the same flow in another VLAN.
    pub(super) fn flow(&self, key: &FlowKey) -> u64 {
        const WITHOUT_ZONE: u64 = (1 << 40) - 1;
        let [a, b, c, d, e] = *key.raw();
        match key.family() {
            Family::V4 => self.words(&[a, b & WITHOUT_ZONE]),
            Family::V6 => self.words(&[a, b, c, d, e & WITHOUT_ZONE]),
        }
    }
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

impl std::fmt::Debug for KeyedHash {
    /// Shows nothing: the seed is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedHash").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    /// The standard library's SipHash-2-4, of the same bytes under the same key.
    #[expect(deprecated, reason = "the hash is fixed for good, and no other has 2-4 rounds")]
    fn oracle(key: [u64; 2], words: &[u64]) -> u64 {
        use std::hash::Hasher;
        let mut hasher = std::hash::SipHasher::new_with_keys(key[0], key[1]);
        words.iter().for_each(|word| hasher.write(&word.to_le_bytes()));
        hasher.finish()
    }

    #[test]
    fn agrees_with_the_published_vectors() {
        let hash = KeyedHash { key: [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908] };
        assert_eq!(hash.words(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(hash.words(&[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }

    proptest! {
        #[test]
        fn agrees_with_another_implementation(
            seed: u64,
            words in prop::collection::vec(any::<u64>(), 0..40),
        ) {
            let hash = KeyedHash::new(seed);
            prop_assert_eq!(hash.words(&words), oracle(hash.key, &words));
        }
    }

    #[test]
    fn the_zone_does_not_count_and_all_else_does() {
        let hash = KeyedHash::new(5);
        let end = |last: u8, port: u16| (Ipv4Addr::new(192, 0, 2, last), port);
        let key = FlowKey::v4(end(1, 80), end(2, 4000), 6, 0);
        assert_eq!(hash.flow(&key), hash.flow(&FlowKey::v4(end(1, 80), end(2, 4000), 6, 77)));
        for other in [
            FlowKey::v4(end(1, 80), end(2, 4001), 6, 0),
            FlowKey::v4(end(1, 81), end(2, 4000), 6, 0),
            FlowKey::v4(end(1, 80), end(3, 4000), 6, 0),
            FlowKey::v4(end(1, 80), end(2, 4000), 17, 0),
        ] {
            assert_ne!(hash.flow(&key), hash.flow(&other));
        }
        assert_ne!(hash.flow(&key), KeyedHash::new(6).flow(&key));
    }
}
