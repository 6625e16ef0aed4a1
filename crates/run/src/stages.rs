//! How long each stage takes for a lane's packets, where a measurement requests it
//! ([`RuntimeConfig::stages`](crate::RuntimeConfig::stages)).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, Histogram};

/// What a lane does with a burst, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstStage {
    /// The devices' receive queues.
    Receive,
    /// Headers, keys and shards, and the shards' owners.
    Classify,
    /// The service requests the memory that flows lie in.
    Probe,
    /// The service decides.
    Run,
    /// Packets are collected by device, and counted.
    Emit,
    /// The devices' transmit queues.
    Transmit,
    /// Everything else that a poll does.
    Rest,
}

impl BurstStage {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them.
    pub const ALL: [BurstStage; BurstStage::COUNT] = [
        BurstStage::Receive,
        BurstStage::Classify,
        BurstStage::Probe,
        BurstStage::Run,
        BurstStage::Emit,
        BurstStage::Transmit,
        BurstStage::Rest,
    ];
}

/// How long each stage took per packet, in tenths of a nanosecond: a value for each poll that found full bursts alone.
#[derive(Debug, Default)]
pub struct StageTimes([Histogram; BurstStage::COUNT]);

impl StageTimes {
    /// The times of one stage.
    pub fn of(&self, stage: BurstStage) -> &Histogram {
        &self.0[stage as usize]
    }

    /// Adds everything that another lane has noted.
    pub fn add(&self, other: &StageTimes) {
        self.0.iter().zip(&other.0).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

/// Returns whether stages are timed: not before it is turned on, so that what a run does first does not count.
#[derive(Clone, Debug, Default)]
pub struct StageSwitch(Arc<AtomicBool>);

impl StageSwitch {
    /// From now on, stages are timed.
    pub fn turn_on(&self) {
        // Relaxed: nothing is published by it.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stamps the ends of stages.
pub(crate) struct StageMeter {
    clock: Clock,
    switch: StageSwitch,
    last: Cycles,
    /// Ticks of this poll.
    spent: [u64; BurstStage::COUNT],
    times: StageTimes,
}

impl StageMeter {
    pub(crate) fn new(switch: StageSwitch) -> StageMeter {
        let clock = Clock::new();
        let (last, spent) = (clock.cycles(), [0; BurstStage::COUNT]);
        StageMeter { clock, switch, last, spent, times: StageTimes::default() }
    }

    pub(crate) fn times(&self) -> &StageTimes {
        &self.times
    }

    /// Begins a poll.
    pub(crate) fn start(&mut self) {
        self.spent = [0; BurstStage::COUNT];
        self.last = self.clock.cycles();
    }

    /// What has passed since the end of the last stage was the time of this one.
    pub(crate) fn end(&mut self, stage: BurstStage) {
        let now = self.clock.cycles();
        self.spent[stage as usize] += now.0.wrapping_sub(self.last.0);
        self.last = now;
    }

    /// Notes a poll that found so many packets, if the switch is on.
    pub(crate) fn note(&self, packets: usize) {
        if !self.switch.is_on() {
            return;
        }
        for (histogram, &ticks) in self.times.0.iter().zip(&self.spent) {
            let nanos = self.clock.nanos_between(Cycles(0), Cycles(10 * ticks));
            histogram.record(nanos / packets as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn time_belongs_to_the_stage_that_ends() {
        let switch = StageSwitch::default();
        let mut meter = StageMeter::new(switch.clone());
        meter.start();
        meter.end(BurstStage::Receive);
        let (begun, spent) = (meter.last, meter.spent[BurstStage::Receive as usize]);
        meter.end(BurstStage::Run);
        meter.end(BurstStage::Run);
        // Not a tick is lost between the stages.
        assert_eq!(meter.spent[BurstStage::Run as usize], meter.last.0 - begun.0);
        assert_eq!(meter.spent[BurstStage::Receive as usize], spent);
        meter.note(32);
        assert_eq!(meter.times().of(BurstStage::Run).count(), 0, "nothing counts yet");
        switch.turn_on();
        meter.note(32);
        let times = meter.times();
        assert_eq!(BurstStage::ALL.map(|stage| times.of(stage).count()), [1; BurstStage::COUNT]);
        assert_eq!(times.of(BurstStage::Probe).quantile(0.5), Some(0));
        let sum = StageTimes::default();
        sum.add(times);
        sum.add(times);
        assert_eq!(sum.of(BurstStage::Emit).count(), 2);
        assert!(BurstStage::ALL.iter().zip(0..).all(|(stage, number)| *stage as usize == number));
    }
}
