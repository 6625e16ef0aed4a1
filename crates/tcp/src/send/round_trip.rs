//! The round-trip time and the retransmission timeout (RFC 6298).

use std::time::Duration;

use rheostat_base::Time;

use crate::config::Config;
use crate::sequence::SequenceNumber;

/// The clock's granularity.
const GRANULARITY: Duration = Duration::from_millis(1);
/// The timeout with which data starts after a SYN was lost (RFC 6298, 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// One segment per round trip is measured. If anything was retransmitted meanwhile, only time stamps can tell.
#[derive(Debug)]
pub(crate) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
    timeout: Duration,
    /// How often the timeout was doubled.
    doublings: u32,
    measured: Option<Measured>,
    min: Duration,
    max: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    end: SequenceNumber,
    sent: Time,
    is_ambiguous: bool,
}

impl RoundTrip {
    pub(crate) fn new(config: &Config) -> RoundTrip {
        RoundTrip {
            smoothed: None,
            variation: Duration::ZERO,
            timeout: config.initial_rto,
            doublings: 0,
            measured: None,
            min: config.min_rto,
            max: config.max_rto,
        }
    }

    /// The smoothed round-trip time.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The retransmission timeout, doublings included.
    pub(crate) fn timeout(&self) -> Duration {
        self.scaled(self.doublings)
    }

    /// The timeout doubled so many times, up to the largest.
    pub(crate) fn scaled(&self, doublings: u32) -> Duration {
        self.timeout.saturating_mul(1 << doublings.min(30)).min(self.max)
    }

    pub(crate) fn back_off(&mut self) {
        self.doublings += 1;
    }

    /// The handshake is done; it took so long unless a SYN was retransmitted.
    pub(crate) fn on_handshake(&mut self, sample: Option<Duration>) {
        match sample {
            Some(sample) => self.on_sample(sample),
            None => self.timeout = self.timeout.max(AFTER_LOST_SYN).min(self.max),
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
    pub(crate) fn on_ack(&mut self, una: SequenceNumber, echoed: Option<Duration>, now: Time) {
        if let Some(measured) = self.measured.take_if(|measured| !una.is_before(measured.end)) {
            let sample =
                if measured.is_ambiguous { echoed } else { Some(now.since(measured.sent)) };
            if let Some(sample) = sample {
                self.on_sample(sample);
            }
        }
    }

    fn on_sample(&mut self, sample: Duration) {
        let smoothed = match self.smoothed {
            None => {
                self.variation = sample / 2;
                sample
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(sample)) / 4;
                (smoothed * 7 + sample) / 8
            }
        };
        self.smoothed = Some(smoothed);
        let timeout = smoothed + (self.variation * 4).max(GRANULARITY);
        self.timeout = timeout.max(self.min).min(self.max);
        self.doublings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: SequenceNumber = SequenceNumber(100);

    fn round_trip() -> RoundTrip {
        RoundTrip::new(&Config { min_rto: Duration::from_millis(1), ..Config::default() })
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_timeout_is_one_second_before_the_first_sample() {
        assert_eq!(round_trip().timeout(), ms(1_000));
    }

    #[test]
    fn the_first_sample_counts_thrice_and_later_ones_an_eighth() {
        let mut round_trip = round_trip();
        round_trip.on_sample(ms(100));
        assert_eq!((round_trip.smoothed(), round_trip.timeout()), (Some(ms(100)), ms(300)));
        round_trip.on_sample(ms(180));
        // SRTT = 7/8 * 100 + 1/8 * 180, RTTVAR = 3/4 * 50 + 1/4 * 80.
        assert_eq!((round_trip.smoothed(), round_trip.timeout()), (Some(ms(110)), ms(340)));
    }

    #[test]
    fn timeouts_double_up_to_the_largest_until_there_is_a_sample() {
        let mut round_trip = round_trip();
        let mut timeouts = Vec::new();
        for _ in 0..8 {
            timeouts.push(round_trip.timeout().as_secs());
            round_trip.back_off();
        }
        assert_eq!(timeouts, [1, 2, 4, 8, 16, 32, 60, 60]);
        round_trip.on_sample(ms(100));
        assert_eq!(round_trip.timeout(), ms(300));
    }

    #[test]
    fn after_a_retransmission_only_time_stamps_are_believed() {
        let mut round_trip = round_trip();
        round_trip.on_sent(END, Time::ZERO);
        round_trip.on_retransmitted();
        round_trip.on_ack(END, None, Time::from_secs(5));
        assert_eq!(round_trip.smoothed(), None);
        round_trip.on_sent(END + 10, Time::from_secs(5));
        round_trip.on_retransmitted();
        round_trip.on_ack(END + 10, Some(ms(20)), Time::from_secs(9));
        assert_eq!(round_trip.smoothed(), Some(ms(20)));
    }

    #[test]
    fn a_lost_syn_leaves_three_seconds() {
        let mut round_trip = round_trip();
        round_trip.on_handshake(None);
        assert_eq!(round_trip.timeout(), ms(3_000));
    }
}
