//! Quantities written as people write them, the inverse of `rheostat_base::unit`.

use std::fmt;
use std::time::Duration;

/// The longest time any setting may have: what comes near it is a mistyped unit.
pub const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A count with the largest of `k`, `M`, `G` that divides it: `1M`, but `65536`.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64);

/// Bytes, to three figures, in powers of 1,024.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

/// A duration from its largest unit down: `5min`, `2h 4min`, `1s 500ms`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
        match units.into_iter().find(|(unit, _)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = "B";
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if value < 1_024.0 {
                break;
            }
            value /= 1_024.0;
            unit = larger;
        }
        let decimals = if unit == "B" || value >= 100.0 { 0 } else { 1 };
        write!(f, "{value:.decimals$} {unit}")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (86_400_000_000_000, "d"),
            (3_600_000_000_000, "h"),
            (60_000_000_000, "min"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        let mut space = "";
        for (unit, name) in units {
            if rest >= unit {
                write!(f, "{space}{}{name}", rest / unit)?;
                rest %= unit;
                space = " ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rheostat_base::unit;

    use super::*;

    #[test]
    fn written_as_people_do() {
        assert_eq!(Count(1_000_000).to_string(), "1M");
        assert_eq!(Count(1_500_000).to_string(), "1500k");
        assert_eq!(Count(0).to_string(), "0");
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes(36 << 20).to_string(), "36.0 MiB");
        assert_eq!(Span(Duration::from_secs(7_440)).to_string(), "2h 4min");
        assert_eq!(Span(Duration::from_millis(1_500)).to_string(), "1s 500ms");
        assert_eq!(Span(Duration::ZERO).to_string(), "0s");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(count in 0..1u64 << 50, nanoseconds in 0..1u64 << 50) {
            prop_assert_eq!(unit::parse_count(&Count(count).to_string()), Ok(count));
            let duration = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(unit::parse_duration(&Span(duration).to_string()), Ok(duration));
        }
    }
}
