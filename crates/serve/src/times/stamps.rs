//! When the stages of a request ended.

use std::time::Duration;

use rheostat_base::Time;

use super::RequestStage;

/// When a request arrived, and when each of its stages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamps {
    arrived: Time,
    /// Nanoseconds from the arrival, never less than those before; 4 s at most.
    ends: [u32; RequestStage::COUNT],
    class: u8,
}

impl Stamps {
    /// Of a request whose segment arrived at `arrived`.
    pub(crate) fn new(arrived: Time, class: u8) -> Stamps {
        Stamps { arrived, ends: [0; RequestStage::COUNT], class }
    }

    /// Notes that a stage has ended at `now`, and all later ones not before.
    pub(crate) fn end(&mut self, stage: RequestStage, now: Time) {
        let nanos = u32::try_from(now.since(self.arrived).as_nanos()).unwrap_or(u32::MAX);
        let before = self.ends[..stage as usize].last().copied().unwrap_or(0);
        self.ends[stage as usize..].fill(nanos.max(before));
    }

    /// Nanoseconds from the arrival to the end of the last stage.
    pub(crate) fn total(&self) -> u32 {
        self.ends[RequestStage::COUNT - 1]
    }

    /// Nanoseconds that each stage took.
    pub(crate) fn stages(&self) -> [u32; RequestStage::COUNT] {
        let mut before = 0;
        self.ends.map(|end| end - std::mem::replace(&mut before, end))
    }
}

/// A request and how long its stages took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// When it arrived.
    pub arrived: Time,
    /// What kind of request it was, as the application says.
    pub class: u8,
    /// How long each of [`RequestStage::ALL`] took.
    pub stages: [Duration; RequestStage::COUNT],
}

impl TimedRequest {
    /// From its arrival until its reply was sent.
    pub fn total(&self) -> Duration {
        self.stages.iter().sum()
    }
}

impl From<&Stamps> for TimedRequest {
    fn from(stamps: &Stamps) -> TimedRequest {
        let stages = stamps.stages().map(|nanos| Duration::from_nanos(nanos.into()));
        TimedRequest { arrived: stamps.arrived, class: stamps.class, stages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_last_from_the_end_of_the_one_before() {
        let at = |nanos| Time::from_secs(5) + Duration::from_nanos(nanos);
        let mut stamps = Stamps::new(at(0), 3);
        stamps.end(RequestStage::ReceiveQueue, at(100));
        stamps.end(RequestStage::TcpIn, at(150));
        // Queue took no time; a clock of another core may be behind.
        stamps.end(RequestStage::Application, at(149));
        stamps.end(RequestStage::TcpOut, at(1_000));
        assert_eq!(stamps.stages(), [100, 50, 0, 0, 0, 850]);
        assert_eq!(stamps.total(), 1_000);
        let timed = TimedRequest::from(&stamps);
        assert_eq!((timed.total(), timed.class), (Duration::from_nanos(1_000), 3));
        stamps.end(RequestStage::TcpOut, at(10_000_000_000));
        assert_eq!(stamps.total(), u32::MAX);
    }
}
