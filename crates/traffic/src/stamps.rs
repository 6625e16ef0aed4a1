//! Time that only goes forward, from stamps that may not.

use std::time::Duration;

use rheostat_base::Time;

/// Reads the time stamps of a capture as a clock. A stamp before the last one counts as the same moment, and
/// a gap counts up to a limit: captures put together from several have gaps of years, and some stamps are
/// wrong.
#[derive(Clone, Debug)]
pub struct Stamps {
    longest_gap: Duration,
    last: Option<Time>,
    elapsed: Time,
    backward: u64,
    cut: u64,
}

impl Stamps {
    /// A clock on which no gap is longer than this.
    pub fn new(longest_gap: Duration) -> Stamps {
        Stamps { longest_gap, last: None, elapsed: Time::ZERO, backward: 0, cut: 0 }
    }

    /// The time of the packet that is stamped `stamp`, since that of the first.
    pub fn read(&mut self, stamp: Time) -> Time {
        // Beside the last stamp and not the latest: one stamp from the future must not stop the clock.
        if let Some(last) = self.last.replace(stamp) {
            let gap = stamp.since(last);
            self.backward += u64::from(stamp < last);
            self.cut += u64::from(gap > self.longest_gap);
            self.elapsed += gap.min(self.longest_gap);
        }
        self.elapsed
    }

    /// Stamps that lay before the one before.
    pub fn backward(&self) -> u64 {
        self.backward
    }

    /// Gaps that were cut to the limit.
    pub fn cut(&self) -> u64 {
        self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_past_nor_the_far_future_stops_the_clock() {
        let mut stamps = Stamps::new(Duration::from_secs(5));
        let times = [100, 101, 99, 100, 9_000_000, 100, 102].map(Time::from_secs);
        let read = times.map(|time| stamps.read(time).as_nanos() / 1_000_000_000);
        assert_eq!(read, [0, 1, 1, 2, 7, 7, 9]);
        assert_eq!((stamps.backward(), stamps.cut()), (2, 1));
    }
}
