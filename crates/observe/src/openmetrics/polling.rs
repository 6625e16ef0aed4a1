//! Families of the polling of lanes.

use rheostat_run::WorkerPolling;
use rheostat_run::poll::metronome::Mode;

use super::Snapshot;
use super::family::{Family, Kind, Samples};
use super::histogram::Buckets;

pub(super) const FAMILIES: &[Family] = &[
    Family::new(
        "rheo_lane_mode",
        Kind::Seconds,
        &["lane", "mode"],
        "Seconds that the lane was polled in each mode",
        |run, to| {
            for (number, lane) in run.sample.polling.lanes.iter().enumerate() {
                for (mode, spent) in Mode::ALL.iter().zip(lane.spent) {
                    to.real([&number, mode], spent.as_secs_f64());
                }
            }
        },
    ),
    Family::new(
        "rheo_vacation",
        Kind::Times,
        &["lane"],
        "How long the lane was not polled, in the modes that sleep; the sum is rounded up by a few per cent",
        |run, to| {
            for (number, lane) in run.sample.polling.lanes.iter().enumerate() {
                if lane.vacations.count > 0 {
                    to.buckets([&number], Buckets::of(lane.vacations.bins.iter().copied()));
                }
            }
        },
    ),
    worker("rheo_worker_sleeps", "Sleeps of a chosen length", |run, to| {
        each(run, to, |worker| worker.sleeps);
    }),
    worker("rheo_worker_blocks", "Waits for an interrupt or a timer", |run, to| {
        each(run, to, |worker| worker.blocks);
    }),
    worker("rheo_worker_tries", "Tries of lanes' locks", |run, to| {
        each(run, to, |worker| worker.tries);
    }),
    worker("rheo_worker_lost_tries", "Tries while another worker had the lane", |run, to| {
        each(run, to, |worker| worker.lost);
    }),
];

const fn worker(name: &'static str, help: &'static str, of: fn(&Snapshot, &mut Samples)) -> Family {
    Family::new(name, Kind::Count, &["worker"], help, of)
}

fn each(run: &Snapshot, to: &mut Samples, figure: fn(&WorkerPolling) -> u64) {
    for (number, worker) in run.sample.polling.workers.iter().enumerate() {
        to.count([&number], figure(worker));
    }
}
