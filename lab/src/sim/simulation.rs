//! One run in virtual time.

use rheostat_control::Balancer;

use super::machine::SimMachine;
use super::packet::SimPacket;
use super::series_meter::{INTERVAL, SeriesMeter};
use super::stretch::Stretch;
use super::work::SimWork;
use crate::delays::quantile_us;
use crate::plans::PlanLog;
use crate::record::RecordedRun;
use crate::scenario::policy_of;

/// How often the migrator is looked after at the end, and how long: in nanoseconds.
pub(super) const GLANCE: u64 = 100_000;
pub(super) const TIMEOUT: u64 = 60_000_000_000;

/// A machine, its controller, and the meter of its intervals.
pub(super) struct Simulation<W> {
    pub(super) machine: SimMachine<W>,
    /// With the log of its policy; none where packets are dispatched one by one.
    pub(super) balancer: Option<(Balancer, PlanLog)>,
    pub(super) stretch: Stretch,
    pub(super) meter: SeriesMeter,
    /// The end of the measurement.
    pub(super) end: u64,
    /// When the controller wants to look, and when an interval ends.
    pub(super) due: u64,
    pub(super) tick: u64,
    /// What is known of the run beforehand.
    pub(super) run: RecordedRun,
}

impl<W: SimWork> Simulation<W> {
    /// Lets packets arrive, the next ones of the source. Returns how much of the run is over, between 0 and 1.
    pub(super) fn feed(&mut self, packets: &[SimPacket]) -> f64 {
        let mut now = 0;
        for packet in packets {
            now = self.stretch.time_of(packet.at);
            if now >= self.end {
                return 1.0;
            }
            self.pass(now);
            self.machine.advance(now);
            self.machine.arrive(packet, now);
        }
        now as f64 / self.end as f64
    }

    /// Lets time pass until `now`, with the meter's intervals and the controller's steps on the way.
    fn pass(&mut self, now: u64) {
        while self.due.min(self.tick) <= now {
            let next = self.due.min(self.tick);
            self.machine.advance(next);
            if next == self.tick {
                self.meter.note(next, &self.machine);
                self.tick += INTERVAL;
            }
            if next == self.due {
                self.due = match &mut self.balancer {
                    Some((balancer, _)) => self.machine.control(balancer, next),
                    None => u64::MAX,
                };
            }
        }
    }

    /// Ends the run: nothing arrives any more, and what is under way leaves.
    pub(super) fn finish(mut self) -> RecordedRun {
        self.pass(self.end);
        self.machine.run_dry(self.end, GLANCE, TIMEOUT);
        let (ledger, meter) = (&self.machine.ledger, &self.meter);
        let latency = |share: f64| Some((share, quantile_us(&ledger.latency, share)?));
        let run = RecordedRun {
            packets: ledger.arrived,
            delivered: ledger.delivered,
            dropped: ledger.dropped,
            lost: ledger.lost(),
            duplicated: ledger.duplicated,
            reordered: ledger.reordered,
            latency_us: RecordedRun::SHARES.into_iter().filter_map(latency).collect(),
            imbalance: meter.imbalance(),
            spread: meter.spread(),
            migrations: meter.migrations(),
            active: meter.active(),
            plans: self
                .balancer
                .map(|(_, log)| log.summary(policy_of(&self.run.policy) == "rsspp")),
            ..self.run
        };
        RecordedRun { series: self.meter.into_series(), ..run }
    }
}
