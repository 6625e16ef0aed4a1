//! Times of a run that a reload changes while its thread waits for its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rheostat_control::Config;

/// No time at all.
const NONE: u64 = u64::MAX;

/// Times of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTimes(Arc<[AtomicU64; 3]>);

// Relaxed everywhere: each time is read on its own, and publishes nothing.
impl RunTimes {
    /// Those of a configuration.
    pub(crate) fn of(config: &Config) -> RunTimes {
        let times = RunTimes(Arc::default());
        times.set(config);
        times
    }

    /// Those of another configuration from now on.
    pub(crate) fn set(&self, config: &Config) {
        let drain = config.serve.as_ref().map(|serve| serve.drain_time);
        let times = [config.run.duration, Some(config.observe.interval), drain];
        for (known, time) in self.0.iter().zip(times) {
            known.store(time.map_or(NONE, in_nanos), Ordering::Relaxed);
        }
    }

    /// After which time since its start the run ends by itself.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.get(0)
    }

    /// The time between two lines of metrics.
    pub(crate) fn interval(&self) -> Duration {
        self.get(1).unwrap_or(Duration::MAX)
    }

    /// How long the connections of a service may take to end.
    pub(crate) fn drain_time(&self) -> Duration {
        self.get(2).unwrap_or_default()
    }

    fn get(&self, time: usize) -> Option<Duration> {
        let nanos = self.0[time].load(Ordering::Relaxed);
        (nanos != NONE).then(|| Duration::from_nanos(nanos))
    }
}

fn in_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NONE - 1)
}
