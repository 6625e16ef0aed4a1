//! Measuring what sleeps take.

use std::time::Duration;

use rheostat_base::Clock;
use rustix::time::{ClockId, clock_gettime};

use super::{RunDelay, SleepPoint, SleepProfile, Sleeper};

/// What is requested: from the shortest sleep to where the overshoot no longer changes.
pub const ASKED: [Duration; 6] = [
    Duration::from_micros(1),
    Duration::from_micros(5),
    Duration::from_micros(10),
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
];

/// Sleeps that a worker makes of each duration when it starts: 25 ms in all.
pub const SAMPLES_AT_START: usize = 100;

/// A sleep that takes longer than was asked for by more than this may have waited for a core.
const LATE: Duration = Duration::from_micros(50);

/// Sleeps `samples` times (at least once) for each duration in [`ASKED`], on the calling thread, with the priority and on
/// the core that it has. A sleep counts without the time that the thread then waited for its core: a busy machine is no reason to
/// take sleeps for longer than they are.
///
/// `between` is called behind the sleeps of each duration, for a thread with other duties.
///
/// Bounds: takes about 0.25 ms per sample of an undisturbed machine.
pub fn calibrate(
    sleeper: &Sleeper,
    clock: &Clock,
    samples: usize,
    mut between: impl FnMut(),
) -> SleepProfile {
    let mut run_delay = RunDelay::of_this_thread();
    let point = |asked| {
        // The first sleeps after another duration find other predictions of the idle governor.
        (0..4).for_each(|_| sleeper.sleep(asked));
        let cpu = thread_cpu();
        run_delay.take();
        let taken: Vec<_> = (0..samples.max(1))
            .map(|_| {
                let start = clock.cycles();
                sleeper.sleep(asked);
                let taken = Duration::from_nanos(clock.nanos_between(start, clock.cycles()));
                // Read where it may matter: it costs as much as a short sleep.
                match taken > asked + LATE {
                    true => taken.saturating_sub(run_delay.take()).max(asked),
                    false => taken,
                }
            })
            .collect();
        let cpu = thread_cpu().saturating_sub(cpu) / taken.len() as u32;
        between();
        SleepPoint::new(asked, taken, cpu)
    };
    SleepProfile::new(ASKED.into_iter().filter_map(point).collect())
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock.

    use super::*;

    #[test]
    fn sleeps_of_this_machine_take_at_least_what_was_asked_and_cost_less_than_they_take() {
        let clock = Clock::new();
        let profile = calibrate(&Sleeper::new(clock.clone()), &clock, 20, || {});
        let asked: Vec<_> = profile.points().iter().map(SleepPoint::asked).collect();
        assert_eq!(asked, ASKED);
        for point in profile.points() {
            assert_eq!(point.taken().len(), 20);
            // The counter and the kernel's clock agree within a hundredth.
            assert!(point.quantile(0.0) >= point.asked().mul_f64(0.99), "{point:?}");
            let mean = point.taken().iter().sum::<Duration>() / 20;
            assert!(point.cpu() > Duration::ZERO && point.cpu() < 4 * mean, "{point:?}");
        }
        assert!(profile.shortest() > Duration::from_micros(1));
    }
}
