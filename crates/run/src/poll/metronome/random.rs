//! Small random numbers for choices that no attacker gains by foreseeing.

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, two nanoseconds a number.
#[derive(Clone, Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    /// Different seeds give unrelated numbers.
    pub(super) fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// A number below `end`, which is at least 1 and small: the bias is `end` ÷ 2^32.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (((bits >> 32) * end as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_below_the_end_are_about_as_frequent() {
        let mut random = SplitMix::new(7);
        let mut counts = [0; 5];
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!((0..100).map(|_| random.below(1)).max(), Some(0));
    }
}
