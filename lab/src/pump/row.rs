//! What a row states.

use std::time::Duration;

use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::Round;

/// One absence. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PumpRow {
    /// How long the lane stayed away, in milliseconds.
    pub away_ms: f64,
    /// Packets per second.
    pub rate: u64,
    /// Descriptors of the receive queue.
    pub descriptors: u32,
    /// Packets dropped by the pumped device, on which nothing but the lane's polls works.
    pub dropped_pumped: u64,
    /// Packets dropped by the stepped device, which enqueues at every moment at which the lane polled.
    pub dropped_stepped: u64,
    /// What arrives in such an absence beyond what the ring holds.
    pub expected: u64,
    /// The longest time between two polls in truth, in milliseconds.
    pub longest_ms: f64,
    /// What a packet of 64 bytes costs the lane that takes it, in nanoseconds: the source's part of a lane's work.
    pub write_ns: f64,
}

impl PumpRow {
    pub(super) fn new(round: &Round, (away, rate, descriptors): (Duration, u64, u32)) -> PumpRow {
        let millis = |time: Duration| to_thousandths(time.as_secs_f64() * 1e3);
        // One more is due at the very start of the absence, or at its end.
        let arrive = away.as_secs_f64() * rate as f64 + 1.0;
        PumpRow {
            away_ms: millis(away),
            rate,
            descriptors,
            dropped_pumped: round.dropped_pumped,
            dropped_stepped: round.dropped_stepped,
            expected: (arrive as u64).saturating_sub(descriptors.into()),
            longest_ms: millis(round.longest),
            write_ns: 0.0,
        }
    }
}

impl TableRow for PumpRow {
    const COLUMNS: &'static [Column<PumpRow>] = &[
        Column::text("away ms", 8, |row| row.away_ms.to_string()),
        Column::count("packets/s", 10, |row| row.rate),
        Column::count("descriptors", 12, |row| row.descriptors.into()),
        Column::count("pumped", 10, |row| row.dropped_pumped),
        Column::count("stepped", 10, |row| row.dropped_stepped),
        Column::count("expected", 10, |row| row.expected),
        Column::number("longest ms", 11, 3, |row| row.longest_ms),
        Column::number("write ns", 9, 1, |row| row.write_ns),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_drops_of_each_device_and_what_the_ring_cannot_hold() {
        let round = Round {
            dropped_pumped: 345,
            dropped_stepped: 346,
            longest: Duration::from_micros(3_250),
        };
        let row = PumpRow::new(&round, (Duration::from_millis(3), 200_000, 256));
        assert_eq!((row.away_ms, row.rate, row.descriptors), (3.0, 200_000, 256));
        assert_eq!((row.dropped_pumped, row.dropped_stepped), (345, 346));
        // 600 packets in 3 ms, and the one at its start.
        assert_eq!((row.expected, row.longest_ms), (601 - 256, 3.25));
        assert_eq!(PumpRow::new(&round, (Duration::from_millis(1), 200_000, 256)).expected, 0);
    }
}
