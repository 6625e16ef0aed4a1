//! Acknowledgements that challenge the peer, or answer what is not acceptable, are limited (RFC 5961, 7).

use std::time::Duration;

use rheostat_base::Time;

/// The least pause between two: at most ten in five seconds. The limit belongs to one connection, so that the answers of one say
/// nothing about another.
const PAUSE: Duration = Duration::from_millis(500);

/// The pause is longer by less than this. The exact length follows from a secret of the connection: an attacker who could predict
/// the limit would learn by counting answers if a forged segment had used one up (CVE-2016-5696).
const JITTER: Duration = Duration::from_millis(500);

/// What came of the wish to challenge the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// An acknowledgement is sent.
    Sent,
    /// None is sent: the last one was less than a second ago.
    Withheld,
}

/// When the next one may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChallengeLimit {
    next: Time,
}

impl ChallengeLimit {
    /// Whether one may be sent now, which counts as having sent it. `secret` is a number of the connection that third parties do
    /// not know.
    pub(crate) fn permits(&mut self, secret: u32, now: Time) -> bool {
        let permits = now >= self.next;
        if permits {
            self.next = now + PAUSE + JITTER.mul_f64(fraction(secret, now));
        }
        permits
    }
}

/// A number from 0 to less than 1 that looks random: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
fn fraction(secret: u32, now: Time) -> f64 {
    let mut bits = (u64::from(secret) << 32) ^ now.as_nanos();
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(((bits ^ (bits >> 31)) >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses of a limit that is tried each millisecond, in milliseconds.
    fn pauses(secret: u32) -> Vec<u64> {
        let mut limit = ChallengeLimit::default();
        let times: Vec<u64> =
            (0..60_000).filter(|ms| limit.permits(secret, Time::from_millis(*ms))).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn pauses_last_between_a_half_and_one_second_and_depend_on_the_secret() {
        let lengths = pauses(7);
        assert_eq!(lengths, pauses(7));
        assert!(lengths.iter().all(|ms| (500..=1_000).contains(ms)), "{lengths:?}");
        let alike = lengths.iter().zip(pauses(8)).filter(|(a, b)| *a == b).count();
        assert!(alike * 10 < lengths.len(), "{alike} of {} pauses are equal", lengths.len());
        let shorter = lengths.iter().filter(|ms| **ms < 750).count();
        assert!((lengths.len() / 4..lengths.len() * 3 / 4).contains(&shorter), "{shorter}");
    }
}
