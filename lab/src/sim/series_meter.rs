//! How a simulation goes on, interval by interval.

use std::time::Duration;

use super::ledger::LedgerCounts;
use super::machine::SimMachine;
use super::work::SimWork;
use crate::record::Series;

/// The length of an interval, in nanoseconds.
pub(super) const INTERVAL: u64 = 100_000_000;

/// Looks at a machine at the end of each interval.
#[derive(Debug)]
pub(super) struct SeriesMeter {
    series: Series,
    warm_up: u64,
    /// Of each lane at the end of the interval before: busy nanoseconds, and packets.
    before: Vec<(u64, u64)>,
    counts: LedgerCounts,
    moved: u64,
    /// Intervals measured: the busiest lane's time by the number of active ones, and the time of all.
    busiest: f64,
    all: f64,
    /// By interval, the most packets of a lane beyond the fewest, as a share of these.
    spreads: Vec<f64>,
    active: Vec<u16>,
}

impl SeriesMeter {
    pub(super) fn new(lanes: u16, warm_up: Duration) -> SeriesMeter {
        let series = Series {
            interval: INTERVAL as f64 / 1e9,
            warm_up: warm_up.as_secs_f64(),
            load: vec![Vec::new(); lanes.into()],
            ..Series::default()
        };
        SeriesMeter {
            series,
            warm_up: warm_up.as_nanos() as u64,
            before: vec![(0, 0); lanes.into()],
            counts: LedgerCounts::default(),
            moved: 0,
            busiest: 0.0,
            all: 0.0,
            spreads: Vec::new(),
            active: Vec::new(),
        }
    }

    /// An interval ends at `now`.
    pub(super) fn note<W: SimWork>(&mut self, now: u64, machine: &SimMachine<W>) {
        let owns = machine.active();
        let active = owns.iter().filter(|owns| **owns).count();
        let (mut most, mut all) = (0, 0);
        let (mut most_packets, mut fewest_packets) = (0, u64::MAX);
        for (index, lane) in machine.workers().enumerate() {
            let count = (lane.counts.busy_ns, lane.counts.shards.iter().sum());
            let before = std::mem::replace(&mut self.before[index], count);
            let (busy, packets) = (count.0 - before.0, count.1 - before.1);
            let load = (busy as f64 / INTERVAL as f64).min(1.0);
            self.series.load[index].push(load as f32);
            // A lane that is to be parked counts as long as it works.
            if owns[index] || packets > 0 {
                (most, all) = (busy.max(most), all + busy);
                most_packets = packets.max(most_packets);
                fewest_packets = packets.min(fewest_packets);
            }
        }
        if now > self.warm_up {
            self.busiest += most as f64 * active as f64;
            self.all += all as f64;
            self.active.push(active as u16);
            if (1..u64::MAX).contains(&fewest_packets) {
                self.spreads.push((most_packets - fewest_packets) as f64 / fewest_packets as f64);
            }
        }
        let (counts, moved) = (machine.ledger.all, machine.migrator.arrived);
        let arrived = counts.arrived - self.counts.arrived;
        self.series.offered.push(arrived as f64 / self.series.interval);
        self.series.delivered.push(counts.left - self.counts.left);
        self.series.dropped.push(counts.dropped - self.counts.dropped);
        self.series.migrations.push(moved - self.moved);
        self.series.active.push(active as u16);
        (self.counts, self.moved) = (counts, moved);
    }

    /// The busiest lane's work ÷ the mean, of the intervals behind the warm-up, weighted by their work.
    pub(super) fn imbalance(&self) -> f64 {
        if self.all > 0.0 { self.busiest / self.all } else { 1.0 }
    }

    /// The median of how many more packets the busiest lane had than the least busy one.
    pub(super) fn spread(&self) -> Option<f64> {
        let mut spreads = self.spreads.clone();
        spreads.sort_by(f64::total_cmp);
        spreads.get(spreads.len() / 2).copied()
    }

    /// Lanes that owned shards, on average.
    pub(super) fn active(&self) -> f64 {
        let sum: f64 = self.active.iter().map(|lanes| f64::from(*lanes)).sum();
        sum / self.active.len().max(1) as f64
    }

    /// Shards that moved behind the warm-up.
    pub(super) fn migrations(&self) -> u64 {
        let warm = (self.warm_up / INTERVAL) as usize;
        self.series.migrations.iter().skip(warm).sum()
    }

    pub(super) fn into_series(self) -> Series {
        self.series
    }
}
