//! Rates and bursts, in a unit of tokens in which their arithmetic is exact.

use thiserror::Error;

/// Tokens that one byte costs. A token is so small that a rate of one bit per second brings one in one
/// nanosecond: at any whole rate and after any whole number of nanoseconds the tokens are a whole
/// number, so nothing is rounded and nothing drifts.
pub(super) const TOKENS_PER_BYTE: u64 = 8_000_000_000;

/// How fast tokens come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    bits_per_second: u64,
    /// 2^64 ÷ `bits_per_second`, rounded up.
    inverse: u64,
}

/// How many tokens a bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Burst(u64);

/// A rate or a burst that the arithmetic has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The rate is not between [`Rate::LEAST`] and [`Rate::MOST`].
    #[error("{0} bit/s is not between 1 kb/s and 1 Tb/s")]
    Rate(u64),
    /// The burst is larger than [`Burst::MOST`].
    #[error("a burst of {0} bytes is larger than 1 GB")]
    Burst(u64),
}

impl Rate {
    /// The lowest rate, in bits per second.
    pub const LEAST: u64 = 1_000;
    /// The highest rate, in bits per second.
    pub const MOST: u64 = 1_000_000_000_000;

    /// A rate in bits per second.
    ///
    /// # Errors
    /// [`QuantityError::Rate`].
    pub const fn new(bits_per_second: u64) -> Result<Rate, QuantityError> {
        if bits_per_second < Rate::LEAST || bits_per_second > Rate::MOST {
            return Err(QuantityError::Rate(bits_per_second));
        }
        Ok(Rate { bits_per_second, inverse: u64::MAX / bits_per_second + 1 })
    }

    /// Bits per second.
    pub const fn bits_per_second(&self) -> u64 {
        self.bits_per_second
    }

    /// The tokens that come in `nanoseconds`, or `u64::MAX` when they are more: no bucket holds so
    /// many.
    #[inline]
    pub(super) const fn tokens(&self, nanoseconds: u64) -> u64 {
        nanoseconds.saturating_mul(self.bits_per_second)
    }

    /// Nanoseconds in which at least `tokens` come, and less than two more than it takes. Two
    /// buckets' worth of tokens take half a year at most.
    #[inline]
    pub(super) const fn nanoseconds(&self, tokens: u64) -> u64 {
        // A multiplication instead of a division: the product lies above the quotient, by less than
        // tokens / 2^64.
        ((tokens as u128 * self.inverse as u128) >> 64) as u64 + 1
    }
}

impl Burst {
    /// The largest burst in bytes. The tokens of two of them together fit 64 bits.
    pub const MOST: u64 = 1_000_000_000;
    /// A bucket that holds nothing.
    pub const NONE: Burst = Burst(0);

    /// A burst in bytes.
    ///
    /// # Errors
    /// [`QuantityError::Burst`].
    pub const fn new(bytes: u64) -> Result<Burst, QuantityError> {
        if bytes > Burst::MOST {
            return Err(QuantityError::Burst(bytes));
        }
        Ok(Burst(bytes * TOKENS_PER_BYTE))
    }

    /// Bytes.
    pub const fn bytes(&self) -> u64 {
        self.0 / TOKENS_PER_BYTE
    }

    /// Tokens.
    #[inline]
    pub(super) const fn tokens(&self) -> u64 {
        self.0
    }
}

const _: () = assert!(Burst::MOST <= u64::MAX / TOKENS_PER_BYTE / 2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        assert_eq!(Rate::new(999), Err(QuantityError::Rate(999)));
        assert_eq!(Rate::new(1_000).unwrap().bits_per_second(), 1_000);
        assert_eq!(Rate::new(Rate::MOST).unwrap().bits_per_second(), Rate::MOST);
        let error = Rate::new(Rate::MOST + 1).unwrap_err().to_string();
        assert_eq!(error, "1000000000001 bit/s is not between 1 kb/s and 1 Tb/s");
        assert_eq!(Burst::new(Burst::MOST).unwrap().bytes(), Burst::MOST);
        assert_eq!(Burst::new(Burst::MOST + 1), Err(QuantityError::Burst(Burst::MOST + 1)));
    }

    proptest! {
        /// The time for so many tokens is never too short, and too long by less than two nanoseconds.
        #[test]
        fn the_time_for_tokens_brings_them(
            bits in Rate::LEAST..=Rate::MOST,
            tokens in 0..=2 * Burst::MOST * TOKENS_PER_BYTE,
        ) {
            let rate = Rate::new(bits).unwrap();
            let brought = |nanoseconds: u64| u128::from(nanoseconds) * u128::from(bits);
            let nanoseconds = rate.nanoseconds(tokens);
            prop_assert!(brought(nanoseconds) >= u128::from(tokens));
            prop_assert!(nanoseconds < 2 || brought(nanoseconds - 2) < u128::from(tokens));
        }
    }
}
