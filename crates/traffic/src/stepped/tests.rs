use proptest::prelude::*;
use rheostat_packet::LinkType;

use super::*;

/// A packet every so many nanoseconds.
#[derive(Debug)]
struct Metronome(u64, u64);

impl Source for Metronome {
    fn next(&mut self, _: &mut Vec<u8>) -> Option<Arrival> {
        let time = Time::from_nanos(self.0);
        self.0 += self.1;
        Some(Arrival { time, len: 0, wire_len: 0, link: LinkType::Raw })
    }
}

fn steps(list: &[(u64, f64)]) -> Vec<RateStep> {
    let step = |&(ms, factor)| RateStep { at: Duration::from_millis(ms), factor };
    list.iter().map(step).collect()
}

/// Packets before each of these milliseconds, one packet per microsecond at a factor of 1.
fn counts(list: &[(u64, f64)], until: &[u64]) -> Vec<usize> {
    let mut source = Stepped::new(Metronome(0, 1_000), steps(list)).unwrap();
    let mut times = Vec::new();
    while let Some(arrival) = source.next(&mut Vec::new()) {
        times.push(arrival.time);
        if arrival.time >= Time::from_millis(*until.last().unwrap()) {
            break;
        }
    }
    until.iter().map(|ms| times.partition_point(|time| *time < Time::from_millis(*ms))).collect()
}

#[test]
fn the_rate_changes_at_the_boundary_and_not_beside_it() {
    let list = [(2, 3.0), (4, 0.0), (7, 0.5)];
    assert_eq!(
        counts(&list, &[1, 2, 3, 4, 6, 7, 9]),
        [1_000, 2_000, 5_000, 8_000, 8_000, 8_000, 9_000]
    );
}

#[test]
fn without_steps_nothing_changes_and_behind_a_last_zero_nothing_comes() {
    assert_eq!(counts(&[], &[1, 5]), [1_000, 5_000]);
    assert_eq!(counts(&[(1, 0.0)], &[1, 9]), [1_000, 1_000]);
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let refused = |list: &[(u64, f64)]| Stepped::new(Metronome(0, 1), steps(list)).unwrap_err();
    assert_eq!(refused(&[(5, 1.0), (5, 2.0)]), SourceError::Order(1));
    assert_eq!(refused(&[(5, -1.0)]), SourceError::Step(-1.0));
    assert!(matches!(refused(&[(5, f64::NAN)]), SourceError::Step(_)));
}

proptest! {
    /// What has arrived by a moment is the integral of the rate up to it.
    #[test]
    fn packets_are_the_integral_of_the_rate(
        gaps in prop::collection::vec((1_u64..40, prop_oneof![Just(0.0), 0.01_f64..50.0]), 0..6),
        moment in 1_u64..200,
        every in 2_000_u64..50_000,
    ) {
        let mut at = 0;
        let list: Vec<(u64, f64)> =
            gaps.iter().map(|(gap, factor)| { at += gap; (at, *factor) }).collect();
        let mut source = Stepped::new(Metronome(0, every), steps(&list)).unwrap();
        let (mut count, mut last) = (0_u64, Time::ZERO);
        while let Some(arrival) = source.next(&mut Vec::new()) {
            prop_assert!(arrival.time >= last);
            last = arrival.time;
            if last >= Time::from_millis(moment) {
                break;
            }
            count += 1;
        }
        // Piece by piece.
        let mut sent = 0.0;
        let mut from = (0, 1.0);
        for &(at, factor) in list.iter().chain([&(u64::MAX, 1.0)]) {
            sent += (at.min(moment) - from.0.min(moment)) as f64 * 1e6 * from.1;
            from = (at, factor);
        }
        let expected = sent / every as f64;
        prop_assert!((count as f64 - expected).abs() <= 1.001, "{count} packets, not {expected}");
    }
}
