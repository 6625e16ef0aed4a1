//! The keyed hash that places flows in a table.
//!
//! Senders choose flow keys, so with a fixed hash an attacker could fill one line of the table and make every lookup there
//! slow. The hash is therefore drawn at random, from a family for which a bound on collisions is proven for *every* pair of
//! keys, not for typical ones:
//!
//! 1. NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: "UMAC", CRYPTO '99; RFC 4418, section 5.2): the
//!    sum over the message's pairs of 32-bit words of (m₂ᵢ + k₂ᵢ)·(m₂ᵢ₊₁ + k₂ᵢ₊₁), inner sums modulo
//!    2³², products and outer sum modulo 2⁶⁴. For two distinct messages of equal length and random k
//!    the values are equal with probability at most 2⁻³². Every key is hashed as a message of one
//!    length, five words of 64 bits and the family; what the words that are always zero for IPv4, and
//!    the family, contribute is a constant, computed once. An IPv4 key costs two multiplications.
//! 2. A fixed permutation of the 64-bit words. It changes nothing about which values are equal, so the
//!    proof does not need it; practice does. NH is linear in each word while the others stay, and so
//!    is step 3, so keys that count up (a port scan) would form an arithmetic progression, which a few
//!    in a hundred seeds would fold into a few lines: a bound on pairs does not rule that out.
//! 3. Multiplication by a random odd number modulo 2⁶⁴, of which only the high bits are used
//!    (Dietzfelbinger, Hagerup, Katajainen, Penttonen, "A reliable randomized algorithm for the
//!    closest-pair problem", 1997): distinct values fall into the same one of n equal intervals of
//!    [0, 2⁶⁴) with probability at most 4/n.
//!
//! Two keys chosen without knowledge of the seed therefore meet in one of n lines with probability at
//! most 2⁻³² + 4/n, and agree in line and 16-bit tag with probability at most 2⁻³² + 4/(2¹⁶·n). The
//! table uses nothing but such contiguous high bits. The bound holds as long as hash values do not
//! leak; the table shows none.

use rheostat_packet::{Family, FlowKey};

/// The hash of a flow key: computed once when the packet is parsed and used by every stage after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct FlowHash(pub u64);

/// One hash function of the family. All tables of a process share one, so that a packet's hash can be
/// computed before its shard is known.
#[derive(Clone, Copy)]
pub struct FlowHasher {
    /// Each word is the keys of two 32-bit words of the message.
    keys: [u64; 5],
    /// What words 2 to 4, zero for IPv4, and the family contribute.
    v4: u64,
    /// What the family contributes to the hash of an IPv6 key.
    v6: u64,
    multiplier: u64,
}

impl FlowHasher {
    /// How many random words a hash function is made of.
    pub const SEED_WORDS: usize = 7;

    /// The hash function that `seed` selects. The seed must be random and kept secret; the argument
    /// above is void otherwise.
    pub fn new(seed: [u64; FlowHasher::SEED_WORDS]) -> FlowHasher {
        let [k0, k1, k2, k3, k4, family, multiplier] = seed;
        let v4 = [nh(0, k2), nh(0, k3), nh(0, k4), nh(Family::V4 as u64, family)];
        FlowHasher {
            keys: [k0, k1, k2, k3, k4],
            v4: v4.into_iter().fold(0, u64::wrapping_add),
            v6: nh(Family::V6 as u64, family),
            multiplier: multiplier | 1,
        }
    }

    /// The function of a fixed seed, the same in every process: for tests and harnesses, whose results repeat. It protects from
    /// no attacker, since keys that collide can be computed; what receives the traffic of others draws a seed.
    pub fn fixed() -> FlowHasher {
        // Digits of pi: with small numbers half of a word is zero, and all keys that are a single address have the same hash.
        FlowHasher::new([
            0x243f_6a88_85a3_08d3,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
            0x082e_fa98_ec4e_6c89,
            0x4528_21e6_38d0_1377,
            0xbe54_66cf_34e9_0c6c,
            0xc0ac_29b7_c97c_50dd,
        ])
    }

    /// The hash of `key`.
    #[inline(always)]
    pub fn hash(&self, key: &FlowKey) -> FlowHash {
        self.hash_words(key.raw(), key.family())
    }

    /// The hash of the key with these words.
    #[inline(always)]
    pub(crate) fn hash_words(&self, words: &[u64; 5], family: Family) -> FlowHash {
        let k = &self.keys;
        let start = nh(words[0], k[0]).wrapping_add(nh(words[1], k[1]));
        let sum = match family {
            Family::V4 => start.wrapping_add(self.v4),
            Family::V6 => start
                .wrapping_add(nh(words[2], k[2]))
                .wrapping_add(nh(words[3], k[3]))
                .wrapping_add(nh(words[4], k[4]))
                .wrapping_add(self.v6),
        };
        FlowHash(scramble(sum).wrapping_mul(self.multiplier))
    }
}

/// What one pair of 32-bit words, packed in a 64-bit one, contributes to NH.
#[inline]
const fn nh(word: u64, key: u64) -> u64 {
    let low = (word as u32).wrapping_add(key as u32);
    let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
    low as u64 * high as u64
}

/// A fixed permutation of the 64-bit words that is far from linear: the first half of MurmurHash3's
/// finaliser, to which the random multiplier is the second.
#[inline]
const fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^ (word >> 33)
}

impl std::fmt::Debug for FlowHasher {
    /// Shows nothing: the seed is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn seed(start: u64) -> [u64; FlowHasher::SEED_WORDS] {
        // SplitMix64: any generator will do.
        let mut state = start;
        std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ x >> 31
        })
    }

    /// NH as RFC 4418 defines it, over twelve 32-bit words: the key's, then the family and zero.
    fn reference(seed: &[u64; FlowHasher::SEED_WORDS], key: &FlowKey) -> u64 {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let message: Vec<u32> =
            key.raw().iter().copied().chain([key.family() as u64]).flat_map(halves).collect();
        let keys: Vec<u32> = seed[..6].iter().copied().flat_map(halves).collect();
        let sum = (0..12).step_by(2).fold(0_u64, |sum, i| {
            let first = u64::from(message[i].wrapping_add(keys[i]));
            sum.wrapping_add(first * u64::from(message[i + 1].wrapping_add(keys[i + 1])))
        });
        scramble(sum).wrapping_mul(seed[6] | 1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        #[test]
        fn shortcuts_do_not_change_the_hash(
            start: u64, a: u128, b: u128, ports: (u16, u16), protocol: u8, zone: u32,
        ) {
            let seed = seed(start);
            let hasher = FlowHasher::new(seed);
            let v4 = |x: u128| Ipv4Addr::from_bits(x as u32);
            let v6 = Ipv6Addr::from_bits;
            for key in [
                FlowKey::v4((v4(a), ports.0), (v4(b), ports.1), protocol, zone),
                FlowKey::v6((v6(a), ports.0), (v6(b), ports.1), protocol, zone),
            ] {
                prop_assert_eq!(hasher.hash(&key).0, reference(&seed, &key));
            }
        }
    }

    /// Keys that count up, or differ in their high bits only, are where weak hashes pile up. For each
    /// set and many seeds, the fullest of as many lines as there are keys stays as light as chance
    /// makes it: random placement puts more than 14 in any line of this test once in a million runs.
    #[test]
    fn structured_keys_spread_like_random_ones() {
        let (keys, seeds) = if cfg!(miri) { (64, 2) } else { (1_024_u32, 200) };
        let end = (Ipv4Addr::new(192, 0, 2, 1), 443);
        let sets: [fn(u32) -> (Ipv4Addr, u16); 5] = [
            |i| (Ipv4Addr::from_bits(i), 1),
            |i| (Ipv4Addr::from_bits(i << 20), 1),
            |i| (Ipv4Addr::LOCALHOST, i as u16),
            |i| (Ipv4Addr::LOCALHOST, (i << 6) as u16),
            |i| (Ipv4Addr::from_bits(i), i as u16),
        ];
        for start in 0..seeds {
            let hasher = FlowHasher::new(seed(start));
            for (number, set) in sets.iter().enumerate() {
                let mut lines = vec![0; keys as usize];
                for i in 0..keys {
                    let hash = hasher.hash(&FlowKey::v4(set(i), end, 6, 0)).0;
                    let line = (u128::from(hash) * u128::from(keys)) >> 64;
                    lines[line as usize] += 1;
                }
                let fullest = lines.into_iter().max().unwrap();
                assert!(fullest <= 14, "seed {start}: set {number} puts {fullest} keys in a line");
            }
        }
    }
}
