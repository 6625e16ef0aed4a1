//! The line of metrics that a run prints at intervals.

use std::fmt;

use rheostat_run::LaneSample;
use rheostat_run::Sample;

/// What happened between two samples.
#[derive(Clone, Debug)]
pub struct LiveLine {
    seconds: f64,
    mpps: f64,
    gbps: f64,
    flows: u64,
    drops_per_second: f64,
    loads: Vec<f64>,
    progress: Option<f64>,
    is_idle: bool,
}

impl LiveLine {
    /// The metrics from `earlier` to `later`; `progress` is how much of the input is read.
    pub fn between(earlier: &Sample, later: &Sample, progress: Option<f64>) -> LiveLine {
        let seconds = (later.seconds - earlier.seconds).max(1e-9);
        let arrived = |sample: &Sample| {
            let devices = sample.devices.iter();
            devices.fold((0, 0, 0), |(packets, bytes, drops), device| {
                let drops = drops + device.without_room();
                (packets + device.arrived, bytes + device.arrived_bytes, drops)
            })
        };
        let (before, after) = (arrived(earlier), arrived(later));
        let none = LaneSample::default();
        let since = |index: usize| {
            let lane = &later.lanes[index];
            lane.since(earlier.lanes.get(index).unwrap_or(&none))
        };
        let lanes: Vec<_> = (0..later.lanes.len()).map(since).collect();
        let dropped = LaneSample::sum(&lanes).dropped_total() + (after.2 - before.2);
        LiveLine {
            seconds: later.seconds,
            mpps: (after.0 - before.0) as f64 / seconds / 1e6,
            gbps: (after.1 - before.1) as f64 * 8.0 / seconds / 1e9,
            flows: LaneSample::sum(&later.lanes).flows_live(),
            drops_per_second: dropped as f64 / seconds,
            loads: lanes.iter().map(LaneSample::load).collect(),
            progress,
            is_idle: after.0 == before.0 && dropped == 0,
        }
    }

    /// Whether no packet arrived or was dropped.
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }
}

impl fmt::Display for LiveLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6.1} s  {:>7.3} Mpps  {:>7.3} Gb/s  {:>9} flows  {:>9.0} drops/s  load",
            self.seconds, self.mpps, self.gbps, self.flows, self.drops_per_second
        )?;
        for load in &self.loads {
            write!(f, " {:>3.0} %", load * 100.0)?;
        }
        match self.progress {
            Some(share) => write!(f, "  {:>3.0} % read", share * 100.0),
            None => Ok(()),
        }
    }
}
