//! A run, looked at in equal intervals.

use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_run::{LaneSample, Sample};

use crate::record::{RecordedRun, Series};

/// Between two looks: the period of the policies.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// Reasons to drop a packet that is in order, for want of room.
pub(crate) const NO_ROOM: [DropReason; 5] = [
    DropReason::QueueFull,
    DropReason::NoBuffer,
    DropReason::HandoffFull,
    DropReason::HoldFull,
    DropReason::TransmitFull,
];

/// What was seen at the ends of intervals.
#[derive(Debug)]
pub(super) struct Intervals {
    series: Series,
    /// By interval and lane: nanoseconds busy, and packets processed.
    work: Vec<Vec<(u64, u64)>>,
    /// How long each interval was.
    seconds: Vec<f64>,
    last: Sample,
}

/// What the measured part of a run comes to.
pub(super) struct IntervalMeasurement {
    pub(super) series: Series,
    pub(super) imbalance: f64,
    pub(super) spread: Option<f64>,
    pub(super) active: f64,
    /// Packets per second that the lane processed which processed most.
    pub(super) busiest_pps: f64,
}

impl Intervals {
    /// From `first` on.
    pub(super) fn new(first: Sample, warm_up: Duration) -> Intervals {
        let lanes = first.lanes.len();
        let (interval, warm_up) = (INTERVAL.as_secs_f64(), warm_up.as_secs_f64());
        let series =
            Series { interval, warm_up, load: vec![Vec::new(); lanes], ..Series::default() };
        Intervals { series, work: Vec::new(), seconds: Vec::new(), last: first }
    }

    /// Adds the interval that ends with `sample`; `active` lanes own shards now.
    pub(super) fn add(&mut self, sample: Sample, active: usize) {
        let seconds = (sample.seconds - self.last.seconds).max(1e-9);
        let lanes: Vec<LaneSample> =
            sample.lanes.iter().zip(&self.last.lanes).map(|(now, then)| now.since(then)).collect();
        for (load, lane) in self.series.load.iter_mut().zip(&lanes) {
            load.push((lane.busy_ns as f64 / 1e9 / seconds) as f32);
        }
        let sum = LaneSample::sum(&lanes);
        self.series.offered.push((arrived(&sample) - arrived(&self.last)) as f64 / seconds);
        self.series.delivered.push(done(&sum));
        self.series.dropped.push(no_room(&sample) - no_room(&self.last));
        self.series.migrations.push(sum.shards_in);
        self.series.active.push(active as u16);
        self.work.push(lanes.iter().map(|lane| (lane.busy_ns, done(lane))).collect());
        self.seconds.push(seconds);
        self.last = sample;
    }

    /// What they come to, the first ones, which are warm-up, left out.
    pub(super) fn finish(self) -> IntervalMeasurement {
        let skip = (self.series.warm_up / self.series.interval).round() as usize;
        let measured = || self.work.iter().zip(&self.series.active).skip(skip);
        let (mut busiest, mut all) = (0.0, 0.0);
        let mut spreads = Vec::new();
        for (lanes, &active) in measured() {
            let most = |of: fn(&(u64, u64)) -> u64| lanes.iter().map(of).max().unwrap_or(0);
            busiest += most(|work| work.0) as f64 * f64::from(active);
            all += lanes.iter().map(|work| work.0).sum::<u64>() as f64;
            let at_work = lanes.iter().map(|work| work.1).filter(|&packets| packets > 0);
            let least = at_work.min().unwrap_or(0);
            if least > 0 {
                spreads.push(most(|work| work.1) as f64 / least as f64 - 1.0);
            }
        }
        spreads.sort_by(f64::total_cmp);
        let spread = spreads.get(spreads.len() / 2).copied();
        let count = measured().count().max(1) as f64;
        let active = measured().map(|(_, &active)| f64::from(active)).sum::<f64>() / count;
        let imbalance = if all > 0.0 { busiest / all } else { 1.0 };
        let seconds: f64 = self.seconds.iter().skip(skip).sum();
        let lanes = self.work.first().map_or(0, Vec::len);
        let processed = |lane: usize| measured().map(|(work, _)| work[lane].1).sum::<u64>();
        let most = (0..lanes).map(processed).max().unwrap_or(0);
        let busiest_pps = most as f64 / seconds.max(1e-9);
        IntervalMeasurement { series: self.series, imbalance, spread, active, busiest_pps }
    }
}

impl IntervalMeasurement {
    /// Puts them into a run.
    pub(super) fn into_run(self, run: RecordedRun) -> RecordedRun {
        let IntervalMeasurement { series, imbalance, spread, active, busiest_pps } = self;
        RecordedRun { series, imbalance, spread, active, busiest_pps, ..run }
    }
}

/// Packets that a lane is done with, and that were not dropped for want of room.
fn done(lane: &LaneSample) -> u64 {
    let room: u64 = NO_ROOM.iter().map(|&reason| lane.dropped[reason as usize]).sum();
    lane.sent + lane.consumed + lane.dropped_total() - room
}

/// Packets that have arrived.
pub(crate) fn arrived(sample: &Sample) -> u64 {
    sample.devices.iter().map(|device| device.arrived).sum()
}

/// Packets for which there was no room, at devices or in lanes.
pub(crate) fn no_room(sample: &Sample) -> u64 {
    let before: u64 = sample.devices.iter().map(|device| device.without_room()).sum();
    let lane = |lane: &LaneSample| {
        NO_ROOM.iter().map(|&reason| lane.dropped[reason as usize]).sum::<u64>()
    };
    before + sample.lanes.iter().map(lane).sum::<u64>()
}

/// Packets done with since the start.
pub(crate) fn delivered(sample: &Sample) -> u64 {
    sample.lanes.iter().map(done).sum()
}

/// Shards that have arrived at a new lane since the start.
pub(super) fn migrations(sample: &Sample) -> u64 {
    sample.lanes.iter().map(|lane| lane.shards_in).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, lanes: [(u64, u64); 2]) -> Sample {
        let lane = |(busy_ms, sent): (u64, u64)| LaneSample {
            busy_ns: busy_ms * 1_000_000,
            sent,
            ..LaneSample::default()
        };
        Sample { seconds, lanes: lanes.map(lane).to_vec(), ..Sample::default() }
    }

    #[test]
    fn the_warm_up_is_kept_and_does_not_count() {
        let mut intervals = Intervals::new(sample(0.0, [(0, 0); 2]), INTERVAL);
        intervals.add(sample(0.1, [(100, 900), (0, 0)]), 2);
        intervals.add(sample(0.2, [(160, 1_500), (40, 400)]), 2);
        intervals.add(sample(0.3, [(200, 1_900), (100, 1_000)]), 2);
        let IntervalMeasurement { series, imbalance, spread, active, busiest_pps } =
            intervals.finish();
        assert_eq!(series.load, [vec![1.0, 0.6, 0.4], vec![0.0, 0.4, 0.6]]);
        assert_eq!(series.delivered, [900, 1_000, 1_000]);
        assert!((imbalance - 1.2).abs() < 1e-9, "{imbalance}");
        assert_eq!((spread, active), (Some(0.5), 2.0));
        // 1,000 packets of either in the two intervals that count.
        assert!((busiest_pps - 5_000.0).abs() < 1e-6, "{busiest_pps}");
    }
}
