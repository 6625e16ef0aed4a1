//! Which lanes a worker is about to poll, and which worker to wake for the others.
//!
//! Where any worker may run any lane, work for a lane needs no worker to be woken while a worker has the lane or comes back
//! to it by itself: such a worker *attends* it. Of the workers that block, one *watches* a lane: it is the one to wake. A
//! lane that is neither attended nor watched is *called*: any worker that looks for calls takes it.
//!
//! A worker that stops attending then announces that it sleeps ([`Parker::prepare_park`]), and after that looks once more at
//! its lanes and for calls. A sender of work looks, after sending it, whether the lane is attended, and if not, whether
//! workers sleep. Each writes before it reads what the other writes, with a sequentially consistent fence between, so
//! that one of them notices the other (Dekker's argument, as in [`parker`]): work never waits for a sleeper.
//!
//! [`parker`]: super::parker
//! [`Parker::prepare_park`]: super::parker::Parker::prepare_park

use super::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

/// Stands for the watcher of a lane that has none.
const NO_WATCHER: usize = usize::MAX;

/// What workers and senders of work know of the lanes of a run.
#[derive(Debug)]
pub struct Attendance {
    lanes: Box<[AttendanceLane]>,
    workers: usize,
    /// Whether any lane is called. Written after the lane's flag (Release), taken before it is looked at (Acquire).
    has_calls: AtomicBool,
}

#[derive(Debug)]
#[repr(align(128))]
struct AttendanceLane {
    /// Workers that have the lane, or come back to it by themselves.
    attendants: AtomicU32,
    /// The blocked worker to wake.
    watcher: AtomicUsize,
    /// There is work, and no worker was about to look.
    is_called: AtomicBool,
}

impl Attendance {
    /// Lanes that no worker attends.
    pub fn new(lanes: usize, workers: usize) -> Attendance {
        let lane = || AttendanceLane {
            attendants: AtomicU32::new(0),
            watcher: AtomicUsize::new(NO_WATCHER),
            is_called: AtomicBool::new(false),
        };
        let lanes = (0..lanes).map(|_| lane()).collect();
        Attendance { lanes, workers, has_calls: AtomicBool::new(false) }
    }

    /// A worker attends the lane from now on: it polls it again without being woken.
    #[inline]
    pub fn attend(&self, lane: usize) {
        // Relaxed: a sender that does not see it wakes a worker in vain.
        self.lanes[lane].attendants.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker attends the lane no more. If it is to sleep, it must announce that after this, and then look at the lane once
    /// more.
    #[inline]
    pub fn leave(&self, lane: usize) {
        // Release: pairs with the Acquire load in `call`; a sender that sees it sees which worker watches the lane.
        self.lanes[lane].attendants.fetch_sub(1, Ordering::Release);
    }

    /// Worker `worker` is the one to wake for the lane. Before it leaves the lane.
    pub fn watch(&self, lane: usize, worker: usize) {
        self.lanes[lane].watcher.store(worker, Ordering::Relaxed);
    }

    /// The worker that watched the lane is awake.
    pub fn unwatch(&self, lane: usize) {
        self.lanes[lane].watcher.store(NO_WATCHER, Ordering::Relaxed);
    }

    /// Whether a worker attends the lane.
    pub fn is_attended(&self, lane: usize) -> bool {
        self.lanes[lane].attendants.load(Ordering::Relaxed) > 0
    }

    /// Work was brought to the lane. Costs a fence and a load while the lane is attended. Otherwise, `ring` is asked to
    /// wake its watcher, or else one worker after the other, until it reports that one slept.
    #[inline]
    pub fn call(&self, lane: usize, ring: impl FnMut(usize) -> bool) {
        // Pairs with the fence in `Parker::prepare_park`: either the load below sees that the last worker has left, or that
        // worker's last look sees the work.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release in `leave`.
        if self.lanes[lane].attendants.load(Ordering::Acquire) == 0 {
            self.call_unattended(lane, ring);
        }
    }

    #[cold]
    fn call_unattended(&self, lane: usize, mut ring: impl FnMut(usize) -> bool) {
        let state = &self.lanes[lane];
        state.is_called.store(true, Ordering::Relaxed);
        // Release: pairs with the Acquire swap in `take_calls`. The fence of each bell that is asked orders it before the
        // look at which workers sleep.
        self.has_calls.store(true, Ordering::Release);
        let watcher = state.watcher.load(Ordering::Relaxed);
        if watcher != NO_WATCHER && ring(watcher) {
            return;
        }
        let _ = (0..self.workers).any(|step| ring((lane + step) % self.workers));
    }

    /// Whether lanes are called; costs a load.
    #[inline]
    pub fn has_calls(&self) -> bool {
        self.has_calls.load(Ordering::Relaxed)
    }

    /// Takes the calls of lanes that `may` admits.
    pub fn take_calls(&self, may: impl Fn(usize) -> bool, mut f: impl FnMut(usize)) {
        // Acquire: pairs with the Release store in `call_unattended`. A lane that is called after its flag was looked at
        // raises this one again.
        if !self.has_calls.swap(false, Ordering::Acquire) {
            return;
        }
        let mut is_left = false;
        for (lane, state) in self.lanes.iter().enumerate() {
            if !state.is_called.load(Ordering::Relaxed) {
                continue;
            }
            match may(lane) {
                true => {
                    state.is_called.store(false, Ordering::Relaxed);
                    f(lane);
                }
                false => is_left = true,
            }
        }
        if is_left {
            self.has_calls.store(true, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_attended_lane_needs_no_worker_to_be_woken() {
        let lanes = Attendance::new(2, 3);
        lanes.attend(1);
        lanes.attend(1);
        lanes.leave(1);
        lanes.call(1, |_| panic!("no worker is to be woken"));
        assert!(lanes.is_attended(1) && !lanes.has_calls());
        lanes.leave(1);
        let mut asked = Vec::new();
        lanes.call(1, |worker| {
            asked.push(worker);
            worker == 2
        });
        assert_eq!(asked, [1, 2]);
        assert!(lanes.has_calls());
    }

    #[test]
    fn of_sleeping_workers_the_watcher_is_woken() {
        let lanes = Attendance::new(1, 3);
        lanes.watch(0, 2);
        lanes.call(0, |worker| {
            assert_eq!(worker, 2);
            true
        });
        lanes.unwatch(0);
        let mut asked = 0;
        lanes.call(0, |_| {
            asked += 1;
            false
        });
        assert_eq!(asked, 3, "no worker slept");
    }

    #[test]
    fn a_call_is_taken_once_and_by_a_worker_that_may() {
        let lanes = Attendance::new(3, 1);
        lanes.call(0, |_| true);
        lanes.call(2, |_| true);
        let take = |may: &dyn Fn(usize) -> bool| {
            let mut taken = Vec::new();
            lanes.take_calls(may, |lane| taken.push(lane));
            taken
        };
        assert_eq!(take(&|lane| lane == 2), [2]);
        assert!(lanes.has_calls(), "one is left for others");
        assert_eq!(take(&|_| true), [0]);
        assert!(!lanes.has_calls());
        assert_eq!(take(&|_| true), [0; 0]);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::parker::Parker;
    use crate::sync::spsc;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    struct Run {
        lanes: Attendance,
        bells: [Parker; 2],
        rung: AtomicUsize,
    }

    impl Run {
        fn new() -> Arc<Run> {
            let bells = [Parker::new(), Parker::new()];
            Arc::new(Run { lanes: Attendance::new(1, 2), bells, rung: AtomicUsize::new(0) })
        }

        fn bring(&self, producer: &mut spsc::Producer<u32>) {
            producer.push(7).unwrap();
            self.lanes.call(0, |worker| {
                let rings = self.bells[worker].should_notify();
                if rings {
                    self.rung.fetch_add(1, Ordering::Relaxed);
                }
                rings
            });
        }
    }

    /// The last worker that attends a lane leaves it and sleeps as its watcher while work comes: it sees the work, or is
    /// woken. Fails when the fence in `call` is missing or weakened, and when the worker leaves after it has said that it
    /// sleeps.
    #[test]
    fn work_for_a_lane_does_not_wait_for_the_worker_that_left_it() {
        loom::model(|| {
            let run = Run::new();
            run.lanes.attend(0);
            let (mut producer, mut consumer) = spsc::ring(2);
            let sender = {
                let run = run.clone();
                thread::spawn(move || {
                    run.bring(&mut producer);
                    producer
                })
            };
            run.lanes.watch(0, 0);
            run.lanes.leave(0);
            run.bells[0].prepare_park();
            let seen = consumer.pop().is_some() || run.lanes.has_calls();
            let _ring_stays = sender.join().unwrap();
            assert!(seen || run.rung.load(Ordering::Relaxed) == 1);
        });
    }

    /// Work comes to a lane that no worker attends or watches, while the only worker, which does not look at that lane, goes
    /// to sleep: it sees the call, or is woken. Fails when the call is announced after workers were asked whether they
    /// sleep.
    #[test]
    fn a_call_reaches_a_worker_that_is_awake_or_wakes_it() {
        loom::model(|| {
            let run = Run::new();
            let (mut producer, _consumer) = spsc::ring(2);
            let sender = {
                let run = run.clone();
                thread::spawn(move || {
                    run.bring(&mut producer);
                    producer
                })
            };
            run.bells[0].prepare_park();
            let seen = run.lanes.has_calls();
            let _ring_stays = sender.join().unwrap();
            assert!(seen || run.rung.load(Ordering::Relaxed) == 1);
        });
    }
}
