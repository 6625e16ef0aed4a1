//! How long packets take from their home to the lane that their flow is with, where a measurement requests it
//! ([`RuntimeConfig::hops`](crate::RuntimeConfig::hops)).

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, Histogram};

use crate::lane::PacketInfo;
use crate::stages::StageSwitch;

/// Times packets from just before their home publishes them until the other lane is about to run the chain on them.
pub(crate) struct HopMeter {
    clock: Clock,
    switch: StageSwitch,
    times: Histogram,
}

impl HopMeter {
    pub(crate) fn new(switch: StageSwitch) -> HopMeter {
        HopMeter { clock: Clock::new(), switch, times: Histogram::new() }
    }

    /// When packets that are published now leave their home.
    pub(crate) fn now(&self) -> Cycles {
        self.clock.cycles()
    }

    /// Notes packets that are about to be processed, if the switch is on.
    pub(crate) fn note(&self, found: &[PacketInfo]) {
        let now = self.clock.cycles();
        if self.switch.is_on() {
            for info in found {
                self.times.record(self.clock.nanos_between(info.published(), now));
            }
        }
    }

    /// Nanoseconds of all hops so far.
    pub(crate) fn times(&self) -> &Histogram {
        &self.times
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn hops_count_once_the_switch_is_on() {
        let switch = StageSwitch::default();
        let meter = HopMeter::new(switch.clone());
        let mut info = PacketInfo::default();
        info.set_published(meter.now());
        meter.note(&[info]);
        assert_eq!(meter.times().count(), 0);
        switch.turn_on();
        meter.note(&[info, info]);
        assert_eq!(meter.times().count(), 2);
    }
}
