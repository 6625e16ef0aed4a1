//! How large the receive buffer should be: what the program reads in a round trip, twice (dynamic right-sizing).

use std::time::Duration;

use rheostat_base::Time;

/// A round trip, until one is measured.
const UNMEASURED: Duration = Duration::from_millis(100);

/// The shortest round trip: the clock of others may be no finer.
const LEAST: Duration = Duration::from_millis(1);

/// Counts what is read, by round trips. A window that lets through what is read in a round trip is as large as that; twice as
/// much lets a peer that starts slowly double what it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveTuning {
    /// When the present round trip began; [`Time::NEVER`] before the first data.
    start: Time,
    read: u32,
}

impl ReceiveTuning {
    pub(crate) fn new() -> ReceiveTuning {
        ReceiveTuning { start: Time::NEVER, read: 0 }
    }

    pub(crate) fn on_read(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes.try_into().unwrap_or(u32::MAX));
    }

    /// Data has arrived. Once a round trip has passed, returns what a buffer should hold.
    pub(crate) fn on_data(&mut self, round_trip: Option<Duration>, now: Time) -> Option<usize> {
        if self.start == Time::NEVER {
            self.start = now;
        }
        if now.since(self.start) < round_trip.unwrap_or(UNMEASURED).max(LEAST) {
            return None;
        }
        self.start = now;
        Some((std::mem::take(&mut self.read) as usize).saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_should_hold_twice_what_is_read_in_a_round_trip() {
        let mut tuning = ReceiveTuning::new();
        let trip = Some(Duration::from_millis(20));
        assert_eq!(tuning.on_data(trip, Time::from_millis(0)), None);
        tuning.on_read(300);
        assert_eq!(tuning.on_data(trip, Time::from_millis(19)), None);
        tuning.on_read(200);
        assert_eq!(tuning.on_data(trip, Time::from_millis(20)), Some(1_000));
        tuning.on_read(7);
        assert_eq!(tuning.on_data(None, Time::from_millis(100)), None);
        assert_eq!(tuning.on_data(None, Time::from_millis(120)), Some(14));
    }
}
