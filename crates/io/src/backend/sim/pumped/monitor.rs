//! A pumped NIC as its device and monitors see it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rheostat_base::Time;

use super::pump::{AT_ONCE, NOT_STARTED, Pump, Supply};
use crate::backend::sim::counters;
use crate::backend::sim::engine::{Engine, Replaying};
use crate::device::{DeviceCounters, DeviceMonitor, SourceMonitor, SourceWork};
use crate::lock::{lock, try_lock};
use crate::replay_barrier::ReplayBarrier;

impl Engine for Pump {
    fn await_begin(&self) {
        self.awaits_begin.store(true, Ordering::Relaxed);
    }

    fn replay_by(&self, barrier: Arc<ReplayBarrier>) {
        // Set once.
        let _ = self.barrier.set(Replaying { barrier, reader: None });
    }
}

impl DeviceMonitor for Pump {
    fn counters(&self) -> DeviceCounters {
        counters::sum(self.queues.iter().map(|queue| &queue.arrivals), &self.sent)
    }

    fn is_exhausted(&self) -> bool {
        let now = self.now();
        if !self.is_stopped.load(Ordering::Relaxed) && !is_past_its_source(self, now) {
            return false;
        }
        self.queues.iter().enumerate().all(|(number, queue)| {
            let mut polled = lock(&queue.state);
            if !polled.placement.has_ended() {
                // This queue may never be polled again.
                let origin = self.start(now);
                self.place(number, &mut polled, (now.saturating_add(1), origin), AT_ONCE);
            }
            polled.placement.has_ended() && polled.placement.backlog() == 0
        })
    }

    fn stop(&self) {
        let mut queues: Vec<_> = self.queues.iter().map(|queue| lock(&queue.state)).collect();
        let has_started = self.origin.load(Ordering::Relaxed) != NOT_STARTED;
        let present = self.present(&queues).filter(|_| has_started);
        let end = present.map_or(0, |now| now.saturating_add(1));
        for polled in &mut queues {
            polled.placement.stop(end);
        }
        // Relaxed: a thread that acts on it takes the locks.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn source(&self) -> Option<&dyn SourceMonitor> {
        Some(self)
    }
}

impl SourceMonitor for Pump {
    fn begin(&self, now: Time) {
        self.awaits_begin.store(false, Ordering::Relaxed);
        self.start(now.as_nanos());
    }

    fn progress(&self) -> Option<f64> {
        match &self.supply {
            Supply::Drawer(drawer) => lock(drawer).progress(),
            Supply::Drawn(_) => None,
        }
    }

    fn work(&self) -> Option<SourceWork> {
        // A capture that is replayed states its progress instead.
        if !self.stamping().times_arrival() {
            return None;
        }
        let drawn = match &self.supply {
            Supply::Drawer(drawer) => lock(drawer).drawn(),
            Supply::Drawn(drawn) => drawn.count(),
        };
        let late = self.late.load(Ordering::Relaxed);
        let cpu = Duration::from_nanos(self.cpu.load(Ordering::Relaxed));
        let (replies, late_replies) =
            self.replies.as_ref().map_or((0, 0), |replies| replies.made());
        Some(SourceWork { drawn, late, cpu, replies, late_replies })
    }
}

/// Whether the last packet of the source was due before `now`.
fn is_past_its_source(pump: &Pump, now: u64) -> bool {
    let origin = pump.origin.load(Ordering::Relaxed);
    if origin == NOT_STARTED {
        return false;
    }
    let elapsed = now.saturating_sub(origin);
    match &pump.supply {
        Supply::Drawer(drawer) => try_lock(drawer)
            .is_some_and(|drawer| drawer.has_ended() && drawer.last_due() <= elapsed),
        Supply::Drawn(drawn) => drawn.end() <= elapsed,
    }
}
