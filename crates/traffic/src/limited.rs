//! The beginning of a source.

use std::time::Duration;

use rheostat_base::Time;

use rheostat_io::{Arrival, Source};

/// As much of a source as is requested.
#[derive(Debug)]
pub struct Limited<S> {
    source: S,
    packets: Option<u64>,
    duration: Option<Duration>,
    sent: u64,
    time: Time,
}

impl<S: Source> Limited<S> {
    /// Ends `source` after this many packets, and before the first that comes this long after zero on its
    /// own clock.
    pub fn new(source: S, packets: Option<u64>, duration: Option<Duration>) -> Limited<S> {
        Limited { source, packets, duration, sent: 0, time: Time::ZERO }
    }
}

impl<S: Source> Source for Limited<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.packets.is_some_and(|packets| self.sent >= packets) {
            return None;
        }
        let arrival = self.source.next(frame)?;
        if self.duration.is_some_and(|length| arrival.time >= Time::ZERO + length) {
            self.packets = Some(self.sent);
            return None;
        }
        self.sent += 1;
        self.time = arrival.time;
        Some(arrival)
    }

    fn is_fed(&self) -> bool {
        self.source.is_fed()
    }

    fn progress(&self) -> Option<f64> {
        let packets = self.packets.map(|packets| self.sent as f64 / packets.max(1) as f64);
        let elapsed = self.time.since(Time::ZERO).as_secs_f64();
        let time = self.duration.map(|length| elapsed / length.as_secs_f64().max(1e-9));
        let ends = packets.into_iter().chain(time).chain(self.source.progress());
        ends.reduce(f64::max).map(|share| share.min(1.0))
    }
}
