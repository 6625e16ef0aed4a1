//! The round-trip time and the retransmission timeout (RFC 6298).

use std::num::NonZeroU64;
use std::time::Duration;

use rheostat_base::Time;

use crate::config::Config;
use crate::send::HandshakeSample;
use crate::sequence::SequenceNumber;

/// The clock's granularity.
const GRANULARITY: Duration = Duration::from_millis(1);
/// The timeout with which data starts after a SYN was lost (RFC 6298, 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// One segment per round trip is measured. If anything was retransmitted meanwhile, only time stamps can tell.
#[derive(Debug)]
pub(crate) struct RoundTrip {
    smoothed: Option<NonZeroU64>,
    variation: u64,
    timeout: u64,
    /// How often the timeout was doubled.
    doublings: u8,
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    end: SequenceNumber,
    sent: Time,
    is_ambiguous: bool,
}

/// Spans are kept in nanoseconds: 584 years at most.
fn to_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl RoundTrip {
    pub(crate) fn new(config: &Config) -> RoundTrip {
        RoundTrip {
            smoothed: None,
            variation: 0,
            timeout: to_nanos(config.initial_rto),
            doublings: 0,
            measured: None,
        }
    }

    /// The smoothed round-trip time.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|smoothed| Duration::from_nanos(smoothed.get()))
    }

    /// The retransmission timeout, doublings included.
    pub(crate) fn timeout(&self, config: &Config) -> Duration {
        self.scaled(self.doublings, config)
    }

    /// The timeout doubled so many times, up to the largest.
    pub(crate) fn scaled(&self, doublings: u8, config: &Config) -> Duration {
        Duration::from_nanos(self.timeout)
            .saturating_mul(1_u32 << doublings.min(30))
            .min(config.max_rto)
    }

    /// How often the timeout was doubled since the last sample, at most 255 times.
    pub(crate) fn doublings(&self) -> u8 {
        self.doublings
    }

    pub(crate) fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1);
    }

    /// The handshake is done.
    pub(crate) fn on_handshake(&mut self, sample: HandshakeSample, config: &Config) {
        match sample {
            HandshakeSample::Measured(sample) => self.on_sample(sample, config),
            HandshakeSample::Unknown => {}
            HandshakeSample::Lost => {
                let least = AFTER_LOST_SYN.min(config.max_rto);
                self.timeout = self.timeout.max(to_nanos(least)).min(to_nanos(config.max_rto));
            }
        }
    }

    pub(crate) fn on_sent(&mut self, end: SequenceNumber, now: Time) {
        self.measured.get_or_insert(Measured { end, sent: now, is_ambiguous: false });
    }

    /// Karn's rule: what is acknowledged from now on may be either of two transmissions.
    pub(crate) fn on_retransmitted(&mut self) {
        if let Some(measured) = &mut self.measured {
            measured.is_ambiguous = true;
        }
    }

    /// Everything before `una` is acknowledged; `echoed` is what time stamps say about the round trip.
    pub(crate) fn on_ack(
        &mut self,
        una: SequenceNumber,
        echoed: Option<Duration>,
        config: &Config,
        now: Time,
    ) {
        if let Some(measured) = self.measured.take_if(|measured| !una.is_before(measured.end)) {
            let sample =
                if measured.is_ambiguous { echoed } else { Some(now.since(measured.sent)) };
            if let Some(sample) = sample {
                self.on_sample(sample, config);
            }
        }
    }

    /// A round trip of no time counts as one of a nanosecond.
    fn on_sample(&mut self, sample: Duration, config: &Config) {
        let sample = NonZeroU64::new(to_nanos(sample)).unwrap_or(NonZeroU64::MIN);
        let smoothed = match self.smoothed {
            None => {
                self.variation = sample.get() / 2;
                sample
            }
            Some(smoothed) => {
                let off = smoothed.get().abs_diff(sample.get());
                self.variation = weighted(self.variation, 3, off);
                let mean = weighted(smoothed.get(), 7, sample.get());
                NonZeroU64::new(mean).unwrap_or(NonZeroU64::MIN)
            }
        };
        self.smoothed = Some(smoothed);
        let margin = self.variation.saturating_mul(4).max(to_nanos(GRANULARITY));
        let timeout = smoothed.get().saturating_add(margin);
        self.timeout = timeout.max(to_nanos(config.min_rto)).min(to_nanos(config.max_rto));
        self.doublings = 0;
    }
}

/// The mean of `old`, which counts `weight` times, and `new`.
fn weighted(old: u64, weight: u64, new: u64) -> u64 {
    old.saturating_mul(weight).saturating_add(new) / (weight + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: SequenceNumber = SequenceNumber(100);

    fn config() -> Config {
        Config { min_rto: Duration::from_millis(1), ..Config::default() }
    }

    fn round_trip() -> RoundTrip {
        RoundTrip::new(&config())
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_timeout_is_one_second_before_the_first_sample() {
        assert_eq!(round_trip().timeout(&config()), ms(1_000));
    }

    #[test]
    fn the_first_sample_counts_thrice_and_later_ones_an_eighth() {
        let mut round_trip = round_trip();
        round_trip.on_sample(ms(100), &config());
        assert_eq!(
            (round_trip.smoothed(), round_trip.timeout(&config())),
            (Some(ms(100)), ms(300))
        );
        round_trip.on_sample(ms(180), &config());
        // SRTT = 7/8 * 100 + 1/8 * 180, RTTVAR = 3/4 * 50 + 1/4 * 80.
        assert_eq!(
            (round_trip.smoothed(), round_trip.timeout(&config())),
            (Some(ms(110)), ms(340))
        );
    }

    #[test]
    fn timeouts_double_up_to_the_largest_until_there_is_a_sample() {
        let mut round_trip = round_trip();
        let mut timeouts = Vec::new();
        for _ in 0..8 {
            timeouts.push(round_trip.timeout(&config()).as_secs());
            round_trip.back_off();
        }
        assert_eq!(timeouts, [1, 2, 4, 8, 16, 32, 60, 60]);
        round_trip.on_sample(ms(100), &config());
        assert_eq!(round_trip.timeout(&config()), ms(300));
    }

    #[test]
    fn after_a_retransmission_only_time_stamps_are_believed() {
        let mut round_trip = round_trip();
        round_trip.on_sent(END, Time::ZERO);
        round_trip.on_retransmitted();
        round_trip.on_ack(END, None, &config(), Time::from_secs(5));
        assert_eq!(round_trip.smoothed(), None);
        round_trip.on_sent(END + 10, Time::from_secs(5));
        round_trip.on_retransmitted();
        round_trip.on_ack(END + 10, Some(ms(20)), &config(), Time::from_secs(9));
        assert_eq!(round_trip.smoothed(), Some(ms(20)));
    }

    #[test]
    fn a_lost_syn_leaves_three_seconds() {
        let mut round_trip = round_trip();
        round_trip.on_handshake(HandshakeSample::Lost, &config());
        assert_eq!(round_trip.timeout(&config()), ms(3_000));
    }

    #[test]
    fn no_time_is_a_sample_of_a_nanosecond_and_centuries_are_no_more_than_the_largest_timeout() {
        let mut round_trip = round_trip();
        round_trip.on_sample(Duration::ZERO, &config());
        assert_eq!(round_trip.smoothed(), Some(Duration::from_nanos(1)));
        for _ in 0..40 {
            round_trip.on_sample(Duration::MAX, &config());
        }
        assert_eq!(round_trip.timeout(&config()), config().max_rto);
    }
}
