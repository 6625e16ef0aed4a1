//! How large the private buffer of a worker is.

use std::fmt;
use std::str::FromStr;

use rheostat_base::unit::{UnitError, parse_size};
use thiserror::Error;

/// The smallest buffer: a page.
const LEAST: u64 = 4 << 10;
/// The largest: lines are named by 32 bits.
const MOST: u64 = 64 << 30;

/// A size, or a share of the last-level cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferSize {
    /// Of the last-level cache, above 0 and at most 16.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

/// Why a buffer is impossible.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BufferError {
    /// Neither a share nor a size.
    #[error(
        "`{0}` is neither a share of the last-level cache, such as 80%, nor a size, such as 32MiB"
    )]
    Text(String),
    /// A size that cannot be read.
    #[error("{0}")]
    Unit(#[from] UnitError),
    /// Too small or too large.
    #[error("a buffer is between 4KiB and 64GiB, and this is {0} bytes")]
    Range(u64),
    /// The machine does not say how large its cache is.
    #[error(
        "the size of the last-level cache is not known here: give the buffer as a size, such as 32MiB"
    )]
    NoCache,
}

impl BufferSize {
    /// Bytes, in whole cache lines, where the last-level cache has `cache` bytes.
    ///
    /// # Errors
    /// [`BufferError`] when that is out of range, or a share of a cache whose size is not known.
    pub fn bytes(self, cache: Option<u64>) -> Result<u64, BufferError> {
        let bytes = match self {
            BufferSize::Bytes(bytes) => bytes,
            BufferSize::Share(share) => (cache.ok_or(BufferError::NoCache)? as f64 * share) as u64,
        };
        match (LEAST..=MOST).contains(&bytes) {
            true => Ok(bytes / 64 * 64),
            false => Err(BufferError::Range(bytes)),
        }
    }
}

impl FromStr for BufferSize {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<BufferSize, BufferError> {
        let Some(share) = text.strip_suffix('%') else {
            let bytes = parse_size(text)?;
            return BufferSize::Bytes(bytes).bytes(None).map(BufferSize::Bytes);
        };
        match share.trim().parse::<f64>() {
            Ok(share) if share > 0.0 && share <= 1_600.0 => Ok(BufferSize::Share(share / 100.0)),
            _ => Err(BufferError::Text(text.to_owned())),
        }
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferSize::Share(share) => write!(f, "{}% of the last-level cache", share * 100.0),
            BufferSize::Bytes(bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_shares_of_the_cache_or_sizes() {
        let bytes =
            |text: &str, cache| text.parse::<BufferSize>().and_then(|size| size.bytes(cache));
        assert_eq!(bytes("80%", Some(1 << 20)), Ok(838_848));
        assert_eq!(bytes("20 %", Some(1 << 20)), Ok(209_664));
        assert_eq!(bytes("32MiB", None), Ok(32 << 20));
        assert_eq!(bytes("80%", None), Err(BufferError::NoCache));
        assert_eq!(bytes("1%", Some(1_000)), Err(BufferError::Range(10)));
        for wrong in ["0%", "-1%", "x%", "%", "NaN%", "12", "1B", "1000GiB", ""] {
            assert!(bytes(wrong, Some(1 << 30)).is_err(), "{wrong}");
        }
    }
}
