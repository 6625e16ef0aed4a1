//! Meters: what colour a packet has, by how many tokens its bucket holds.

#[cfg(test)]
mod tests;

use rheostat_base::Time;
use thiserror::Error;

use super::quantity::{Burst, Rate, TOKENS_PER_BYTE};

/// How far a packet is within its limits. In order: the later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Colour {
    /// Within the committed rate and burst.
    Green,
    /// Beyond them, within the excess burst or the peak rate.
    Yellow,
    /// Beyond all.
    Red,
}

/// What a meter holds packets against.
///
/// Tokens flow into the buckets all the time and not one by one, as the RFCs put it: then it does not
/// matter when the first was due, and a packet is judged alike, because its bytes are whole numbers.
/// Buckets are full at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// One rate fills two buckets, the second when the first is full (RFC 2697). Without a second
    /// bucket, a plain limit.
    SingleRate {
        /// The committed information rate.
        rate: Rate,
        /// The committed burst size.
        committed: Burst,
        /// The excess burst size.
        excess: Burst,
    },
    /// Two buckets with a rate each (RFC 2698).
    TwoRate {
        /// The committed information rate.
        rate: Rate,
        /// The committed burst size.
        committed: Burst,
        /// The peak information rate.
        peak_rate: Rate,
        /// The peak burst size.
        peak: Burst,
    },
}

/// Why there is no such meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MeterError {
    /// No packet would ever have tokens (RFC 2697, section 2; RFC 2698, section 2).
    #[error("a bucket that holds nothing lets nothing pass")]
    NoBurst,
    /// RFC 2698, section 2.
    #[error("the peak rate is below the committed rate")]
    PeakBelowCommitted,
}

/// The tokens left of a metered address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Committed, and excess or peak.
    tokens: [u64; 2],
    /// For when they were counted. It never goes back.
    counted: Time,
}

const _: () = assert!(size_of::<Bucket>() == 24);

impl Bucket {
    /// The bucket as plain words, to be kept in shared objects.
    pub(super) fn to_words(self) -> [u64; 3] {
        [self.tokens[0], self.tokens[1], self.counted.as_nanos()]
    }

    /// The time for which its tokens were counted last.
    pub(super) fn counted(&self) -> Time {
        self.counted
    }

    /// A bucket that was kept as words.
    pub(super) fn of_words([first, second, counted]: [u64; 3]) -> Bucket {
        Bucket { tokens: [first, second], counted: Time::from_nanos(counted) }
    }
}

impl Meter {
    /// A limit with two colours: what is not green is red.
    ///
    /// # Errors
    /// [`MeterError::NoBurst`].
    pub fn plain(rate: Rate, burst: Burst) -> Result<Meter, MeterError> {
        Meter::single_rate(rate, burst, Burst::NONE)
    }

    /// The single rate three colour marker of RFC 2697.
    ///
    /// # Errors
    /// [`MeterError::NoBurst`] when neither bucket holds anything.
    pub fn single_rate(rate: Rate, committed: Burst, excess: Burst) -> Result<Meter, MeterError> {
        if committed == Burst::NONE && excess == Burst::NONE {
            return Err(MeterError::NoBurst);
        }
        Ok(Meter::SingleRate { rate, committed, excess })
    }

    /// The two rate three colour marker of RFC 2698.
    ///
    /// # Errors
    /// [`MeterError`] when a bucket holds nothing, or the peak rate is the lower one.
    pub fn two_rate(
        rate: Rate,
        committed: Burst,
        peak_rate: Rate,
        peak: Burst,
    ) -> Result<Meter, MeterError> {
        if committed == Burst::NONE || peak == Burst::NONE {
            return Err(MeterError::NoBurst);
        }
        if peak_rate.bits_per_second() < rate.bits_per_second() {
            return Err(MeterError::PeakBelowCommitted);
        }
        Ok(Meter::TwoRate { rate, committed, peak_rate, peak })
    }

    /// A full bucket.
    pub fn full(&self, now: Time) -> Bucket {
        Bucket { tokens: self.bursts().map(|burst| burst.tokens()), counted: now }
    }

    /// Takes a bucket over that another meter has filled: there are no more tokens in it than it holds now.
    #[inline]
    pub fn adapt(&self, bucket: &mut Bucket) {
        for (tokens, burst) in bucket.tokens.iter_mut().zip(self.bursts()) {
            *tokens = (*tokens).min(burst.tokens());
        }
    }

    /// The colour of a packet of `bytes` that arrived as one of colour `before`, whose tokens are
    /// then gone. In colour-blind mode packets arrive green: both RFCs say the same of a green packet
    /// and of one without colour. A time before the latest counts as the latest.
    #[inline]
    pub fn colour(&self, bucket: &mut Bucket, now: Time, bytes: u32, before: Colour) -> Colour {
        self.refill(bucket, now);
        // More than 64 bits can count is more than any bucket holds.
        let cost = u64::from(bytes).saturating_mul(TOKENS_PER_BYTE);
        let [committed, second] = &mut bucket.tokens;
        match self {
            // RFC 2697, section 3.
            Meter::SingleRate { .. } => {
                if before == Colour::Green && *committed >= cost {
                    *committed -= cost;
                    Colour::Green
                } else if before != Colour::Red && *second >= cost {
                    *second -= cost;
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            // RFC 2698, section 3.
            Meter::TwoRate { .. } => {
                if before == Colour::Red || *second < cost {
                    return Colour::Red;
                }
                *second -= cost;
                if before == Colour::Yellow || *committed < cost {
                    return Colour::Yellow;
                }
                *committed -= cost;
                Colour::Green
            }
        }
    }

    /// When both buckets will be full if no packet comes, or up to 2 ns later. From then on the bucket
    /// is as good as a new one.
    #[inline]
    pub fn full_at(&self, bucket: &Bucket) -> Time {
        let bursts = self.bursts();
        let lack = |which: usize| bursts[which].tokens() - bucket.tokens[which];
        let nanoseconds = match self {
            Meter::SingleRate { rate, .. } => rate.nanoseconds(lack(0) + lack(1)),
            Meter::TwoRate { rate, peak_rate, .. } => {
                rate.nanoseconds(lack(0)).max(peak_rate.nanoseconds(lack(1)))
            }
        };
        Time::from_nanos(bucket.counted.as_nanos().saturating_add(nanoseconds))
    }

    /// Whether less than half of what fits is in one of the buckets.
    #[inline]
    pub fn is_half_empty(&self, bucket: &Bucket) -> bool {
        let [first, second] = self.bursts().map(|burst| burst.tokens() / 2);
        bucket.tokens[0] < first || bucket.tokens[1] < second
    }

    #[inline]
    fn bursts(&self) -> [Burst; 2] {
        match self {
            Meter::SingleRate { committed, excess, .. } => [*committed, *excess],
            Meter::TwoRate { committed, peak, .. } => [*committed, *peak],
        }
    }

    /// Counts the tokens for `now`.
    #[inline]
    fn refill(&self, bucket: &mut Bucket, now: Time) {
        let elapsed = now.as_nanos().saturating_sub(bucket.counted.as_nanos());
        bucket.counted = bucket.counted.max(now);
        let [first, second] = self.bursts().map(|burst| burst.tokens());
        let tokens = &mut bucket.tokens;
        let room = [first - tokens[0], second - tokens[1]];
        match self {
            Meter::SingleRate { rate, .. } => {
                let new = rate.tokens(elapsed);
                let kept = new.min(room[0]);
                tokens[0] += kept;
                tokens[1] += (new - kept).min(room[1]);
            }
            Meter::TwoRate { rate, peak_rate, .. } => {
                tokens[0] += rate.tokens(elapsed).min(room[0]);
                tokens[1] += peak_rate.tokens(elapsed).min(room[1]);
            }
        }
    }
}
