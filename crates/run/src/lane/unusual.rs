//! Usual packets that are treated as if they were unusual, so that tests take the general code where others take the fast
//! path: the outcome must be the same.

use std::env;
use std::str::FromStr;

use thiserror::Error;

/// The environment variable that says which packets these are.
const VARIABLE: &str = "RHEO_UNUSUAL";

/// A share of all usual packets, picked at random by their stamps. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusual {
    /// Packets in 2^32.
    share: u64,
    seed: u32,
}

/// The text names no share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{VARIABLE} is \"{0}\"; it is \"all\", or a share such as \"10%\", with a seed if wanted: \"10%:7\""
)]
pub struct UnusualError(String);

impl Unusual {
    /// All packets.
    pub const ALL: Unusual = Unusual { share: 1 << 32, seed: 0 };

    /// `percent` of all packets, up to 100; other packets with another `seed`.
    pub fn percent(percent: u32, seed: u32) -> Unusual {
        Unusual { share: (u64::from(percent.min(100)) << 32) / 100, seed }
    }

    /// What the environment variable `RHEO_UNUSUAL` says: `all`, `10%` or `10%:SEED`; none when it is not set or empty.
    ///
    /// # Errors
    /// When it says something else.
    pub fn from_env() -> Result<Unusual, UnusualError> {
        match env::var_os(VARIABLE) {
            Some(text) if !text.is_empty() => text.to_string_lossy().parse(),
            _ => Ok(Unusual::default()),
        }
    }

    /// Whether the packet with this stamp is one of them.
    #[inline]
    pub(super) fn includes(self, stamp: u32) -> bool {
        self.share > 0 && u64::from(mixed(stamp ^ self.seed)) < self.share
    }
}

impl FromStr for Unusual {
    type Err = UnusualError;

    fn from_str(text: &str) -> Result<Unusual, UnusualError> {
        if text == "all" {
            return Ok(Unusual::ALL);
        }
        let (share, seed) = text.split_once(':').unwrap_or((text, "0"));
        let percent = share.strip_suffix('%').and_then(|percent| percent.parse().ok());
        match (percent.filter(|&percent| percent <= 100), seed.parse()) {
            (Some(percent), Ok(seed)) => Ok(Unusual::percent(percent, seed)),
            _ => Err(UnusualError(text.into())),
        }
    }
}

/// A number that shows nothing of the order of `x`: the finaliser of MurmurHash3 (Appleby, 2008).
fn mixed(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_as_large_as_it_says_and_others_with_another_seed() {
        let count = |unusual: Unusual| (0..10_000).filter(|&stamp| unusual.includes(stamp)).count();
        assert_eq!(count(Unusual::default()), 0);
        assert_eq!(count(Unusual::ALL), 10_000);
        let (one, other) = (Unusual::percent(10, 1), Unusual::percent(10, 2));
        assert!((800..1_200).contains(&count(one)), "{}", count(one));
        let both =
            (0..10_000).filter(|&stamp| one.includes(stamp) && other.includes(stamp)).count();
        assert!(both < 300, "{both}");
    }

    #[test]
    fn texts_name_shares() {
        assert_eq!("all".parse(), Ok(Unusual::ALL));
        assert_eq!("100%".parse(), Ok(Unusual::ALL));
        assert_eq!("10%".parse(), Ok(Unusual::percent(10, 0)));
        assert_eq!("10%:7".parse(), Ok(Unusual::percent(10, 7)));
        for wrong in ["", "some", "10", "101%", "10%:", "10%:x", "-1%"] {
            assert_eq!(wrong.parse::<Unusual>(), Err(UnusualError(wrong.into())));
        }
    }
}
