//! The meters by example, and against an oracle that counts in fractions.

mod oracle;

use Colour::{Green, Red, Yellow};
use oracle::{Oracle, Ratio};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
/// 68 years and more.
const LONG: u64 = 1 << 61;

fn rate(bits_per_second: u64) -> Rate {
    Rate::new(bits_per_second).unwrap()
}

fn burst(bytes: u64) -> Burst {
    Burst::new(bytes).unwrap()
}

/// Presents packets, each with its time in ns, its bytes and its colour, and the colour to come.
fn play(meter: &Meter, packets: &[(u64, u32, Colour, Colour)]) {
    let mut bucket = meter.full(Time::ZERO);
    for (number, &(at, bytes, before, after)) in packets.iter().enumerate() {
        let colour = meter.colour(&mut bucket, Time::from_nanos(at), bytes, before);
        assert_eq!(colour, after, "packet {number}");
    }
}

#[test]
fn a_single_rate_fills_the_committed_bucket_first() {
    // 1,000 bytes per second.
    let meter = Meter::single_rate(rate(8_000), burst(1_000), burst(500)).unwrap();
    play(
        &meter,
        &[
            (0, 600, Green, Green),
            // 400 are left, and all of the excess.
            (0, 401, Green, Yellow),
            (0, 400, Green, Green),
            (0, 100, Green, Red),
            (0, 99, Green, Yellow),
            (0, 1, Green, Red),
            // The first second's tokens are all committed ones; an instant earlier one lacks.
            (SECOND - 1, 1_000, Green, Red),
            (SECOND, 1_000, Green, Green),
            (SECOND, 1, Green, Red),
            // Only what the committed bucket cannot hold becomes excess.
            (SECOND * 5 / 2, 501, Yellow, Red),
            (SECOND * 5 / 2, 500, Yellow, Yellow),
            (SECOND * 5 / 2, 1_000, Green, Green),
        ],
    );
}

#[test]
fn colours_get_no_better_with_a_single_rate() {
    let meter = Meter::single_rate(rate(8_000), burst(1_000), burst(500)).unwrap();
    play(
        &meter,
        &[
            (0, 1, Red, Red),
            (0, 400, Yellow, Yellow),
            // There are committed tokens, but not for a packet that came yellow.
            (0, 101, Yellow, Red),
            (0, 1_000, Green, Green),
            (0, 100, Green, Yellow),
        ],
    );
}

#[test]
fn two_rates_are_held_apart() {
    let meter = Meter::two_rate(rate(8_000), burst(1_000), rate(16_000), burst(1_500)).unwrap();
    play(
        &meter,
        &[
            (0, 1_000, Green, Green),
            (0, 500, Green, Yellow),
            (0, 1, Green, Red),
            // After half a second there are 500 committed and 1,000 peak tokens.
            (SECOND / 2, 501, Green, Yellow),
            (SECOND / 2, 499, Green, Green),
            (SECOND / 2, 1, Green, Red),
        ],
    );
}

#[test]
fn colours_get_no_better_with_two_rates() {
    let meter = Meter::two_rate(rate(8_000), burst(1_000), rate(16_000), burst(1_500)).unwrap();
    play(
        &meter,
        &[
            (0, 1, Red, Red),
            // Pays peak tokens, no committed ones.
            (0, 500, Yellow, Yellow),
            (0, 1_000, Green, Green),
            (0, 1, Yellow, Red),
        ],
    );
}

#[test]
fn a_plain_limit_has_two_colours() {
    let meter = Meter::plain(rate(8_000), burst(1_500)).unwrap();
    play(&meter, &[(0, 1_500, Green, Green), (0, 1, Green, Red), (SECOND, 1_000, Green, Green)]);
}

#[test]
fn meters_that_nothing_could_pass_are_refused() {
    assert_eq!(Meter::plain(rate(8_000), Burst::NONE), Err(MeterError::NoBurst));
    assert!(Meter::single_rate(rate(8_000), Burst::NONE, burst(1)).is_ok());
    let two_rate = |committed, peak_rate, peak| {
        Meter::two_rate(rate(8_000), burst(committed), rate(peak_rate), burst(peak))
    };
    assert_eq!(two_rate(1, 8_000, 0), Err(MeterError::NoBurst));
    assert_eq!(two_rate(0, 8_000, 1), Err(MeterError::NoBurst));
    assert_eq!(two_rate(1, 7_999, 1), Err(MeterError::PeakBelowCommitted));
    assert!(two_rate(1, 8_000, 1).is_ok());
}

/// Sends packets one after the other, each in the first nanosecond in which there are tokens for it,
/// and returns when the last one was.
fn drain(bits_per_second: u64, room: u64, packets: u64, bytes: u32) -> u64 {
    let meter = Meter::plain(rate(bits_per_second), burst(room)).unwrap();
    let mut bucket = meter.full(Time::ZERO);
    let mut now = 0;
    for _ in 0..packets {
        let lack = (u64::from(bytes) * TOKENS_PER_BYTE).saturating_sub(bucket.tokens[0]);
        now += lack.div_ceil(bits_per_second);
        if lack > 0 {
            let too_early = Time::from_nanos(now - 1);
            assert_eq!(meter.colour(&mut bucket, too_early, bytes, Green), Red);
        }
        assert_eq!(meter.colour(&mut bucket, Time::from_nanos(now), bytes, Green), Green);
    }
    now
}

#[test]
fn nothing_drifts_at_any_rate() {
    // What was sent beyond the burst takes exactly its time, however many packets it was: six days
    // of waiting at 1 kb/s, 5.12 ms at 100 Gb/s.
    for (bits, packets) in [(1_000, 1_000_000), (100_000_000_000, 1_000_000), (7_777_777, 300_000)]
    {
        // The bucket has room for what comes in the rest of the nanosecond in which a packet goes.
        let waited = u128::from(packets - 2) * 64 * 8 * u128::from(SECOND);
        let took = drain(bits, 64 + 64, packets, 64);
        assert_eq!(u128::from(took), waited.div_ceil(bits.into()), "{bits} bit/s");
    }
}

#[test]
fn the_largest_numbers_fit() {
    let most = burst(Burst::MOST);
    let meter = Meter::single_rate(rate(Rate::MOST), most, most).unwrap();
    let mut bucket = meter.full(Time::ZERO);
    assert_eq!(meter.colour(&mut bucket, Time::ZERO, u32::MAX, Green), Red);
    assert_eq!(meter.colour(&mut bucket, Time::ZERO, Burst::MOST as u32, Green), Green);
    assert_eq!(meter.colour(&mut bucket, Time::ZERO, Burst::MOST as u32, Green), Yellow);
    assert_eq!(meter.full_at(&bucket), Time::from_nanos(16_000_001));
    assert_eq!(meter.colour(&mut bucket, Time::NEVER, Burst::MOST as u32, Green), Green);
    assert_eq!(meter.full_at(&bucket), Time::NEVER);
    assert_eq!(meter.colour(&mut bucket, Time::ZERO, Burst::MOST as u32, Green), Yellow);
}

/// A meter and its oracle.
#[derive(Clone, Copy, Debug)]
struct Pair {
    rate: u64,
    committed: u64,
    second: u64,
    peak_rate: Option<u64>,
}

impl Pair {
    fn meter(&self) -> Meter {
        let (committed, second) = (burst(self.committed), burst(self.second));
        match self.peak_rate {
            None => Meter::single_rate(rate(self.rate), committed, second),
            Some(peak) => Meter::two_rate(rate(self.rate), committed, rate(peak), second),
        }
        .unwrap()
    }

    fn oracle(&self, now: u64) -> Oracle {
        Oracle::new(self.rate, self.committed, self.second, self.peak_rate, now)
    }
}

/// Numbers of all sizes alike, up to `most`.
fn sized(most: u64) -> impl Strategy<Value = u64> {
    (0..=most.ilog2(), any::<u64>()).prop_map(move |(bits, n)| (n >> (63 - bits)).min(most))
}

fn rates() -> impl Strategy<Value = u64> {
    let known = prop::sample::select(vec![1_000, 1_001, 99_999_999_999, 100_000_000_000]);
    prop_oneof![known, sized(Rate::MOST).prop_map(|bits| bits.max(Rate::LEAST))]
}

fn pairs() -> impl Strategy<Value = Pair> {
    let bursts = prop_oneof![1..10_000_u64, sized(Burst::MOST).prop_map(|bytes| bytes.max(1))];
    (rates(), bursts.clone(), bursts, prop::option::of(rates())).prop_map(
        |(rate, committed, second, peak_rate)| Pair {
            rate,
            committed,
            second,
            peak_rate: peak_rate.map(|peak| peak.max(rate)),
        },
    )
}

/// A packet: how long after the one before, forwards or backwards, its bytes, its colour.
fn packets() -> impl Strategy<Value = Vec<(i64, u32, Colour)>> {
    let forwards = prop_oneof![
        Just(0),
        Just(1),
        sized(1 << 20).prop_map(|ns| ns as i64),
        sized(LONG).prop_map(|ns| ns as i64),
    ];
    let steps = prop_oneof![8 => forwards, 1 => sized(LONG).prop_map(|ns| -(ns as i64))];
    let bytes = prop_oneof![
        8 => 20_u32..1_600,
        1 => sized(u32::MAX.into()).prop_map(|n| n as u32),
    ];
    let colours = prop::sample::select(vec![Green, Green, Green, Yellow, Red]);
    prop::collection::vec((steps, bytes, colours), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Every packet has the colour that the RFCs give it, counted in fractions, and what is left is
    /// the same to the last token: at all rates, after years, after no time, and when time goes back.
    #[test]
    fn colours_are_those_of_the_rfcs(pair in pairs(), packets in packets(), start in sized(LONG)) {
        let (meter, mut oracle) = (pair.meter(), pair.oracle(start));
        let mut bucket = meter.full(Time::from_nanos(start));
        let mut now = start;
        for (step, bytes, before) in packets {
            now = now.saturating_add_signed(step);
            let colour = meter.colour(&mut bucket, Time::from_nanos(now), bytes, before);
            prop_assert_eq!(colour, oracle.colour(now, bytes, before));
            prop_assert!(colour >= before);
            let held = bucket.tokens.map(|n| Ratio::new(n.into(), TOKENS_PER_BYTE.into()));
            prop_assert_eq!(held, oracle.held());
        }
    }

    /// Time that goes back brings nothing: as little as if it had stood still.
    #[test]
    fn time_that_goes_back_brings_nothing(pair in pairs(), packets in packets()) {
        let meter = pair.meter();
        let mut bucket = meter.full(Time::from_nanos(LONG));
        let mut still = bucket;
        for (step, bytes, before) in packets {
            let earlier = Time::from_nanos(LONG - step.unsigned_abs().min(LONG));
            let colour = meter.colour(&mut bucket, earlier, bytes, before);
            let expected = meter.colour(&mut still, Time::from_nanos(LONG), bytes, before);
            prop_assert_eq!(colour, expected);
            prop_assert_eq!(bucket, still);
        }
    }

    /// A bucket that is forgotten once it is full is not missed.
    #[test]
    fn what_is_full_may_be_forgotten(pair in pairs(), packets in packets()) {
        let meter = pair.meter();
        let mut kept = meter.full(Time::ZERO);
        let mut forgotten = kept;
        let mut now = 0_u64;
        let mut times = 0;
        for (step, bytes, before) in packets {
            now = now.saturating_add(step.unsigned_abs() % (SECOND * 100));
            let time = Time::from_nanos(now);
            if meter.full_at(&forgotten) <= time {
                forgotten = meter.full(time);
                times += 1;
            }
            prop_assert_eq!(
                meter.colour(&mut kept, time, bytes, before),
                meter.colour(&mut forgotten, time, bytes, before)
            );
            prop_assert_eq!(kept, forgotten);
        }
        prop_assume!(times > 0);
    }
}
