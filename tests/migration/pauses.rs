//! Traffic that pauses while time jumps, so that flows and fragments expire without packets piling up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rheostat_traffic::{Arrival, Source};

/// A source whose packets come later by all pauses so far.
pub(crate) struct Pauses<S> {
    inner: S,
    nanos: Arc<AtomicU64>,
}

/// Makes the source pause.
#[derive(Clone)]
pub(crate) struct Pause(Arc<AtomicU64>);

impl<S> Pauses<S> {
    pub(crate) fn new(inner: S) -> (Pauses<S>, Pause) {
        let nanos = Arc::new(AtomicU64::new(0));
        (Pauses { inner, nanos: nanos.clone() }, Pause(nanos))
    }
}

impl Pause {
    pub(crate) fn pause(&self, duration: Duration) {
        self.0.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl<S: Source> Source for Pauses<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let pause = Duration::from_nanos(self.nanos.load(Ordering::Relaxed));
        let arrival = self.inner.next(frame)?;
        Some(Arrival { time: arrival.time + pause, ..arrival })
    }
}
