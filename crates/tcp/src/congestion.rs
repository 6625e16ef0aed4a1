//! How much may be in flight.

mod cubic;
mod newreno;
mod slow_start;

use std::time::Duration;

pub use cubic::Cubic;
pub use newreno::NewReno;
use rheostat_base::Time;

use crate::sequence::SequenceNumber;

/// Bytes that an acknowledgement has covered for the first time, while nothing is being repaired.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// How many.
    pub bytes: u32,
    /// The time.
    pub now: Time,
    /// The smoothed round-trip time, once there is one.
    pub round_trip: Option<Duration>,
    /// How long ago the acknowledged segment was sent, where time stamps are used: in milliseconds.
    pub sample: Option<Duration>,
    /// The acknowledgement number.
    pub una: SequenceNumber,
    /// The number of the next segment that has not been sent.
    pub next: SequenceNumber,
}

/// A congestion controller. It counts bytes; segments have up to `mss` of them.
pub trait Congestion {
    /// What may be in flight.
    fn window(&self) -> u32;

    /// Below this window it grows exponentially.
    fn threshold(&self) -> u32;

    /// Sets the size of full segments, and the initial window that follows from it. Called before anything is in flight.
    fn on_mss(&mut self, mss: u32);

    /// Full segments have another size from now on. What is in flight and the window in bytes remain (RFC 8201, 5.4).
    fn on_segment_size(&mut self, mss: u32);

    /// Data was acknowledged while the window was what limited the sender.
    fn on_ack(&mut self, acked: Acked);

    /// A loss was found by acknowledgements, with so much in flight. Called once per window of data.
    fn on_loss(&mut self, in_flight: u32, now: Time);

    /// The retransmission timer has expired, with so much in flight: for the first time for these segments, or again.
    fn on_timeout(&mut self, in_flight: u32, is_first: bool, now: Time);

    /// Nothing was sent for longer than the retransmission timeout (RFC 5681, 4.1).
    fn on_idle(&mut self);
}

/// The initial window (RFC 6928).
pub(crate) fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

/// Which controller a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681 and 6582.
    NewReno,
    /// RFC 9438.
    #[default]
    Cubic,
}

/// One of the controllers, in place: a connection has no allocation for it.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    NewReno(NewReno),
    Cubic(Cubic),
}

impl Controller {
    pub(crate) fn new(algorithm: Algorithm, mss: u32) -> Controller {
        match algorithm {
            Algorithm::NewReno => Controller::NewReno(NewReno::new(mss)),
            Algorithm::Cubic => Controller::Cubic(Cubic::new(mss)),
        }
    }

    pub(crate) fn get(&self) -> &dyn Congestion {
        match self {
            Controller::NewReno(controller) => controller,
            Controller::Cubic(controller) => controller,
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn Congestion {
        match self {
            Controller::NewReno(controller) => controller,
            Controller::Cubic(controller) => controller,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_is_ten_segments_and_14600_bytes_unless_segments_are_large() {
        assert_eq!([536, 1_460, 2_190, 8_960].map(initial_window), [5_360, 14_600, 14_600, 17_920]);
    }
}
