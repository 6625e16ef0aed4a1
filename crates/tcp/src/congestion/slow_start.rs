//! HyStart++: slow start that ends before the queue of the path overflows (RFC 9406).
//!
//! ```text
//!              the least delay of a round rises
//!  slow start ──────────────────────────────────► conservative slow start ──── five rounds ────► congestion
//!             ◄──────────────────────────────────         a quarter                              avoidance
//!                  it falls below where it rose
//! ```
//!
//! Delays are known where both ends use time stamps. Without them slow start ends at the first loss.

use std::time::Duration;

use super::Acked;
use crate::sequence::SequenceNumber;

/// Segments that one acknowledgement adds to the window at most (L, for senders without pacing).
const MOST_SEGMENTS: u32 = 8;
/// Delays that make a round count (N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// The rise of the least delay that counts: an eighth of it, within these bounds (MIN_RTT_THRESH, MAX_RTT_THRESH).
const RISE: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];
/// How much slower the window grows in conservative slow start (CSS_GROWTH_DIVISOR).
const DIVISOR: u32 = 4;
/// Rounds that conservative slow start lasts, the one included in which it begins (CSS_ROUNDS).
const CAUTIOUS_ROUNDS: u32 = 5;
/// Windows of fewer segments have no round with enough delays, since every other segment is acknowledged.
const LEAST_WINDOW: u32 = 2 * SAMPLES;

/// The first slow start of a connection. Bounds: constant work for an acknowledgement; 64 bytes while a window of 16 segments and
/// more grows, none otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowStart {
    rounds: Option<Box<Rounds>>,
}

/// What an acknowledgement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    /// Bytes to add to the window.
    pub(super) bytes: u32,
    /// Slow start ends.
    pub(super) is_over: bool,
}

/// Delays by round trip. [`Duration::MAX`] is a delay that is not known.
#[derive(Clone, Debug)]
struct Rounds {
    /// The round ends when this number is acknowledged.
    end: SequenceNumber,
    samples: u32,
    least: Duration,
    last_least: Duration,
    cautious: Option<Cautious>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Cautious {
    /// The least delay of the round in which it began.
    baseline: Duration,
    rounds: u32,
}

impl SlowStart {
    /// Data was acknowledged while the window, of so many bytes, is below a threshold that no loss has set.
    pub(super) fn on_ack(&mut self, acked: &Acked, window: u32, mss: u32) -> Growth {
        let bytes = acked.bytes.min(MOST_SEGMENTS * mss);
        if self.rounds.is_none() && window < LEAST_WINDOW * mss {
            return Growth { bytes, is_over: false };
        }
        let rounds = self.rounds.get_or_insert_with(|| Box::new(Rounds::ending_at(acked.next)));
        rounds.on_ack(acked);
        match rounds.cautious {
            None => Growth { bytes, is_over: false },
            Some(cautious) if cautious.rounds < CAUTIOUS_ROUNDS => {
                Growth { bytes: bytes / DIVISOR, is_over: false }
            }
            Some(_) => {
                self.end();
                Growth { bytes: 0, is_over: true }
            }
        }
    }

    /// Slow start is over.
    pub(super) fn end(&mut self) {
        self.rounds = None;
    }
}

impl Rounds {
    fn ending_at(end: SequenceNumber) -> Rounds {
        let (least, last_least) = (Duration::MAX, Duration::MAX);
        Rounds { end, samples: 0, least, last_least, cautious: None }
    }

    fn on_ack(&mut self, acked: &Acked) {
        if !acked.una.is_before(self.end) {
            self.end = acked.next;
            self.last_least = self.least;
            (self.samples, self.least) = (0, Duration::MAX);
            if let Some(cautious) = &mut self.cautious {
                cautious.rounds += 1;
            }
        }
        let Some(sample) = acked.sample else { return };
        self.samples += 1;
        self.least = self.least.min(sample);
        if self.samples < SAMPLES {
            return;
        }
        match self.cautious {
            Some(cautious) if self.least < cautious.baseline => self.cautious = None,
            None if self.has_risen() => {
                self.cautious = Some(Cautious { baseline: self.least, rounds: 0 });
            }
            _ => {}
        }
    }

    fn has_risen(&self) -> bool {
        if self.last_least == Duration::MAX {
            return false;
        }
        let rise = (self.last_least / 8).clamp(RISE[0], RISE[1]);
        self.least >= self.last_least + rise
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::Time;

    use super::*;

    const MSS: u32 = 1_000;
    const WINDOW: u32 = 20 * MSS;

    /// One round of ten acknowledgements of two segments each, with this delay. Returns what the last changes.
    fn round(start: &mut SlowStart, number: u32, delay: Option<u64>) -> Growth {
        let mut growth = None;
        for part in 1..=10 {
            let acked = Acked {
                bytes: 2 * MSS,
                una: SequenceNumber(number * WINDOW + part * 2 * MSS),
                next: SequenceNumber((number + 1) * WINDOW + part * 2 * MSS),
                now: Time::ZERO,
                round_trip: None,
                sample: delay.map(Duration::from_millis),
            };
            let latest = start.on_ack(&acked, WINDOW, MSS);
            growth = Some(latest);
            if latest.is_over {
                break;
            }
        }
        growth.unwrap()
    }

    fn rounds(delays: &[Option<u64>]) -> Vec<(u32, bool)> {
        let mut start = SlowStart::default();
        let delays = delays.iter().enumerate();
        delays
            .map(|(number, delay)| round(&mut start, number as u32, *delay))
            .map(|growth| (growth.bytes, growth.is_over))
            .collect()
    }

    const FULL: (u32, bool) = (2 * MSS, false);
    const QUARTER: (u32, bool) = (MSS / 2, false);

    #[test]
    fn a_rise_of_the_delay_by_an_eighth_makes_slow_start_cautious_and_five_rounds_later_it_ends() {
        let delays = [50, 50, 57, 57, 57, 57, 57, 57].map(Some);
        let expected = [FULL, FULL, QUARTER, QUARTER, QUARTER, QUARTER, QUARTER, (0, true)];
        assert_eq!(rounds(&delays), expected);
    }

    #[test]
    fn a_delay_below_where_it_rose_resumes_slow_start() {
        let delays = [50, 50, 60, 55, 55, 55, 55, 55, 55, 55].map(Some);
        let grown = rounds(&delays);
        assert_eq!(grown[2], QUARTER);
        assert!(grown[3..].iter().all(|growth| *growth == FULL), "{grown:?}");
    }

    #[test]
    fn a_rise_counts_from_4_ms_on_and_always_from_16_ms_on() {
        for (before, after, is_rise) in
            [(1, 4, false), (1, 5, true), (500, 515, false), (500, 516, true), (80, 89, false)]
        {
            let grown = rounds(&[before, before, after].map(Some));
            assert_eq!(grown[2] == QUARTER, is_rise, "{before} ms to {after} ms");
        }
    }

    #[test]
    fn without_stamps_slow_start_goes_on() {
        assert!(rounds(&[None; 20]).iter().all(|growth| *growth == FULL));
    }

    #[test]
    fn an_acknowledgement_adds_eight_segments_at_most_and_small_windows_note_nothing() {
        let mut start = SlowStart::default();
        let acked = Acked {
            bytes: 9 * MSS,
            una: SequenceNumber(0),
            next: SequenceNumber(0),
            now: Time::ZERO,
            round_trip: None,
            sample: Some(Duration::ZERO),
        };
        assert_eq!(start.on_ack(&acked, 15 * MSS, MSS).bytes, 8 * MSS);
        assert!(start.rounds.is_none());
        start.on_ack(&acked, 16 * MSS, MSS);
        assert!(start.rounds.is_some());
    }
}
