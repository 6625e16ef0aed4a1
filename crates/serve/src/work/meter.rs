//! What requests took beside what they should have taken.

use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{Counter, Histogram};

use super::service_times::CLASSES;

/// What one worker measures.
#[derive(Debug)]
pub(super) struct Meter {
    classes: [ClassMeter; CLASSES],
}

#[derive(Debug, Default)]
struct ClassMeter {
    requests: Counter,
    target: Counter,
    took: Counter,
    times: Histogram,
}

/// Reads what all workers have measured.
#[derive(Clone, Debug, Default)]
pub struct WorkMonitor(Arc<Mutex<Vec<Arc<Meter>>>>);

/// What the requests of a class took.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTimes {
    /// The class.
    pub class: usize,
    /// Requests.
    pub requests: u64,
    /// What they should have taken, on average, in nanoseconds.
    pub target_ns: f64,
    /// What they took, on average.
    pub mean_ns: f64,
    /// Which half of them did not exceed.
    pub p50_ns: u64,
    /// Which 99 % of them did not exceed.
    pub p99_ns: u64,
    /// Which 99.9 % of them did not exceed.
    pub p999_ns: u64,
}

impl Meter {
    /// For the worker that the meter belongs to.
    pub(super) fn record(&self, class: u8, target: u64, took: u64) {
        let class = &self.classes[usize::from(class).min(CLASSES - 1)];
        class.requests.increment();
        class.target.add(target);
        class.took.add(took);
        class.times.record(took);
    }
}

impl WorkMonitor {
    /// The meter of one more worker.
    pub(super) fn add(&self) -> Arc<Meter> {
        let classes = std::array::from_fn(|_| ClassMeter::default());
        let meter = Arc::new(Meter { classes });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(meter.clone());
        meter
    }

    /// The classes that had requests.
    pub fn classes(&self) -> Vec<ClassTimes> {
        let meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let class = |class: usize| {
            let sum = ClassMeter::default();
            for one in meters.iter().map(|meter| &meter.classes[class]) {
                sum.requests.add(one.requests.get());
                sum.target.add(one.target.get());
                sum.took.add(one.took.get());
                sum.times.add(&one.times);
            }
            let requests = sum.requests.get();
            let mean = |total: u64| total as f64 / requests as f64;
            let quantile = |q| sum.times.quantile(q).unwrap_or(0);
            (requests > 0).then(|| ClassTimes {
                class,
                requests,
                target_ns: mean(sum.target.get()),
                mean_ns: mean(sum.took.get()),
                p50_ns: quantile(0.5),
                p99_ns: quantile(0.99),
                p999_ns: quantile(0.999),
            })
        };
        (0..CLASSES).filter_map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_of_a_class_add_up() {
        let monitor = WorkMonitor::default();
        let (one, other) = (monitor.add(), monitor.add());
        for _ in 0..3 {
            one.record(1, 10, 12);
        }
        other.record(1, 30, 60);
        other.record(200, 1, 1);
        let classes = monitor.classes();
        assert_eq!(
            classes.iter().map(|c| (c.class, c.requests)).collect::<Vec<_>>(),
            [(1, 4), (CLASSES - 1, 1)]
        );
        let shared = &classes[0];
        assert_eq!((shared.target_ns, shared.mean_ns, shared.p50_ns), (15.0, 24.0, 12));
        assert!(shared.p999_ns >= 60);
        assert!(WorkMonitor::default().classes().is_empty());
    }
}
