//! What is measured of a running service: its capacity, and latencies at a load.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::{ClockSource, Time};
use rheostat_load::ArrivalProcess;

use super::error::SchedBenchError;
use super::rig::{Offered, Plan, RigSample, RigTotals, Samples};
use super::service::{RunningService, TIMEOUT};

/// What passes before anything is measured.
const WARM_UP: Duration = Duration::from_millis(100);
/// From when requests of an open loop are drawn until the first may be due.
const AHEAD: Duration = Duration::from_millis(2);
/// How long the replies to the last requests are waited for.
const DRAIN: Duration = Duration::from_secs(2);
/// Samples that are kept of a closed loop, for each queue.
const SAMPLES: usize = 100_000;

/// How long it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) window: Duration,
    /// Windows of each run.
    pub(super) windows: u32,
    /// Requests under way in each receive queue while the capacity is measured.
    pub(super) under_way: u32,
}

/// A window of a closed loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacityWindow {
    /// Replies per second.
    pub(super) capacity: f64,
    /// The clients' work per request, in nanoseconds.
    pub(super) client_ns: f64,
    /// Calls of devices per reply.
    pub(super) sends: f64,
    /// Allocations per request.
    pub(super) allocations: f64,
}

/// A closed loop.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    pub(super) windows: Vec<CapacityWindow>,
    /// What the application took, on average.
    pub(super) took_ns: f64,
}

/// Measures how much a service does when there is always more to do.
pub(super) fn measure_capacity(
    service: &RunningService,
    effort: &Effort,
    allocations: fn() -> u64,
) -> Result<Capacity, SchedBenchError> {
    service.clients.record(SAMPLES);
    service.clients.follow(Plan::Closed { under_way: effort.under_way });
    thread::sleep(WARM_UP);
    let mut windows = Vec::with_capacity(effort.windows as usize);
    for _ in 0..effort.windows {
        let sample = || (Instant::now(), service.clients.totals(), allocations());
        let earlier = sample();
        // Longer, if the machine pauses for all of it.
        let (later, done) = loop {
            thread::sleep(effort.window);
            let later = sample();
            let done = later.1.since(&earlier.1);
            if done.replies > 0 {
                break (later, done);
            }
            if earlier.0.elapsed() > TIMEOUT {
                return Err(service.silent());
            }
        };
        let per_request = |value: f64| value / done.replies as f64;
        windows.push(CapacityWindow {
            capacity: done.replies as f64 / later.0.duration_since(earlier.0).as_secs_f64(),
            client_ns: per_request(service.nanos(done.ticks)),
            sends: per_request(done.sends as f64),
            allocations: per_request((later.2 - earlier.2) as f64),
        });
    }
    service.clients.follow(Plan::Idle);
    if !is_drained(service, TIMEOUT) {
        return Err(service.silent());
    }
    let samples = service.clients.take_samples();
    let took = samples.iter().flat_map(Samples::list).map(|sample| f64::from(sample.took()));
    let count = samples.iter().map(|samples| samples.list().len()).sum::<usize>().max(1);
    Ok(Capacity { windows, took_ns: took.sum::<f64>() / count as f64 })
}

/// What came of an open loop.
#[derive(Clone, Debug)]
pub(super) struct OpenRun {
    /// The replies to requests that were due in each window, by when they were due.
    pub(super) windows: Vec<Vec<RigSample>>,
    /// Requests of the windows that were not answered within [`DRAIN`] of the last.
    pub(super) unanswered: u64,
    /// Requests that were due in the windows, per second.
    pub(super) offered: f64,
    /// Replies that left in the windows, per second.
    pub(super) achieved: f64,
    /// The clients' work per request, in nanoseconds.
    pub(super) client_ns: f64,
    /// Calls of devices per reply.
    pub(super) sends: f64,
    /// Requests that waited for the window of their connection.
    pub(super) waited: u64,
    /// Segments that the service sent again.
    pub(super) repeated: u64,
    /// Replies that could not be recorded.
    pub(super) unrecorded: u64,
    /// Whether all replies came: else the service has too much left to do for another run.
    pub(super) is_drained: bool,
}

/// Offers requests at a rate for a while, and waits until they are answered.
pub(super) fn measure_open(
    service: &RunningService,
    effort: &Effort,
    process: ArrivalProcess,
    per_second: f64,
    seed: u64,
) -> OpenRun {
    let measured = effort.window * effort.windows;
    let span = WARM_UP + measured;
    let schedule = service.clients.schedule(&Offered { process, per_second, span, seed });
    let requests = schedule.requests() as u64;
    // Any queue may send all replies.
    service.clients.record(schedule.requests());
    let earlier = service.clients.totals();
    let start = service.clock.now() + AHEAD;
    service.clients.follow(Plan::Open(schedule.starting(start)));
    let done = wait_for(service, &earlier, requests, start + span + DRAIN);
    service.clients.follow(Plan::Idle);
    let is_drained = done.replies == requests || is_drained(service, DRAIN);
    let samples = service.clients.take_samples();
    let list = || samples.iter().flat_map(Samples::list);
    let split = Split { from: start + WARM_UP, window: effort.window, windows: effort.windows };
    OpenRun {
        windows: split.by_due(list()),
        unanswered: requests.saturating_sub(done.replies),
        offered: requests as f64 / span.as_secs_f64(),
        achieved: split.left(list()) as f64 / measured.as_secs_f64(),
        client_ns: service.nanos(done.ticks) / done.replies.max(1) as f64,
        sends: done.sends as f64 / done.replies.max(1) as f64,
        waited: done.waited,
        repeated: done.repeated,
        unrecorded: samples.iter().map(|samples| samples.lost).sum(),
        is_drained,
    }
}

/// Waits until so many requests are answered, or until `end`. Returns what was done.
fn wait_for(service: &RunningService, earlier: &RigTotals, requests: u64, end: Time) -> RigTotals {
    loop {
        let done = service.clients.totals().since(earlier);
        if done.replies >= requests || service.clock.now() >= end {
            return done;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until no request is under way. No new ones are made meanwhile but those of a poll that has begun.
fn is_drained(service: &RunningService, limit: Duration) -> bool {
    let begun = Instant::now();
    let mut polls = 0;
    while polls < 2 {
        polls = if service.clients.under_way() == 0 { polls + 1 } else { 0 };
        if begun.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Consecutive windows.
#[derive(Clone, Copy, Debug)]
struct Split {
    from: Time,
    window: Duration,
    windows: u32,
}

impl Split {
    fn window_of(&self, nanos: u64) -> Option<usize> {
        let after = nanos.checked_sub(self.from.as_nanos())?;
        let window = after / (self.window.as_nanos() as u64).max(1);
        (window < self.windows.into()).then_some(window as usize)
    }

    /// Samples by the window in which they were due.
    fn by_due<'a>(&self, samples: impl Iterator<Item = &'a RigSample>) -> Vec<Vec<RigSample>> {
        let mut windows = vec![Vec::new(); self.windows as usize];
        for sample in samples {
            if let Some(window) = self.window_of(sample.due) {
                windows[window].push(*sample);
            }
        }
        windows
    }

    /// Replies that left in any of the windows.
    fn left<'a>(&self, samples: impl Iterator<Item = &'a RigSample>) -> usize {
        let left = |sample: &&RigSample| {
            self.window_of(sample.due.saturating_add(sample.latency.into())).is_some()
        };
        samples.filter(left).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_belong_to_the_window_in_which_they_were_due() {
        let split =
            Split { from: Time::from_nanos(1_000), window: Duration::from_nanos(100), windows: 2 };
        let samples = [(900, 50), (999, 150), (1_000, 250), (1_099, 1), (1_100, 0), (1_200, 1)]
            .map(|(due, latency)| RigSample::new(due, due + latency, 0, 0));
        let windows = split.by_due(samples.iter());
        let dues = |window: usize| windows[window].iter().map(|s| s.due).collect::<Vec<_>>();
        assert_eq!((dues(0), dues(1)), (vec![1_000, 1_099], vec![1_100]));
        // The second, the fourth and the fifth.
        assert_eq!(split.left(samples.iter()), 3);
    }
}
