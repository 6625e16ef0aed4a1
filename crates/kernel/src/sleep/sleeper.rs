//! The sleep of one thread.

use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource};
use rustix::io::Errno;
use rustix::thread::{
    ClockId, Timespec, clock_nanosleep_relative, current_timer_slack, set_current_timer_slack,
};
use thiserror::Error;

use crate::sys::pause::Pause;

/// The kernel has not taken a timer slack of 1 ns for a thread: its sleeps may take as much longer as the slack is.
/// Work goes on; calibration measures what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "sleeps may take {slack:?} longer than asked: the kernel refused a timer slack of 1 ns ({reason}); \
     allow prctl(PR_SET_TIMERSLACK) in the seccomp filter, or run the workers under SCHED_FIFO, which has no slack"
)]
pub struct SlackRefused {
    /// The slack that the thread has.
    pub slack: Duration,
    /// What the kernel said; `None` if it said nothing and kept its slack.
    pub errno: Option<Errno>,
    reason: &'static str,
}

impl SlackRefused {
    fn new(slack: Duration, errno: Option<Errno>) -> SlackRefused {
        let reason = match errno {
            Some(Errno::PERM | Errno::ACCESS) => "not permitted",
            Some(Errno::NOSYS | Errno::INVAL) => "not supported",
            Some(_) => "failed",
            None => "ignored",
        };
        SlackRefused { slack, errno, reason }
    }
}

/// Sleeps and spins of the thread that made it: the timer slack belongs to a thread.
#[derive(Debug)]
pub struct Sleeper {
    slack: Result<(), SlackRefused>,
    pause: Pause,
    clock: Clock,
    /// Not to be sent to a thread that has the default slack.
    thread: PhantomData<*const ()>,
}

/// What the kernel gives a thread that requests nothing.
const DEFAULT_SLACK: Duration = Duration::from_micros(50);

impl Sleeper {
    /// Sets the slack of the calling thread to 1 ns. Whether the kernel took it, [`Sleeper::slack`] states.
    pub fn new(clock: Clock) -> Sleeper {
        let set = set_current_timer_slack(NonZeroU64::new(1));
        let slack = match (set, current_timer_slack()) {
            // Zero is what a thread of a real-time class has, where the kernel takes no slack.
            (_, Ok(0 | 1)) => Ok(()),
            (set, slack) => {
                let slack = slack.map_or(DEFAULT_SLACK, Duration::from_nanos);
                Err(SlackRefused::new(slack, set.err()))
            }
        };
        Sleeper { slack, pause: Pause::detect(), clock, thread: PhantomData }
    }

    /// Whether sleeps are as exact as the kernel can make them.
    ///
    /// # Errors
    /// [`SlackRefused`] when it refused the slack.
    pub fn slack(&self) -> Result<(), SlackRefused> {
        self.slack
    }

    /// Whether [`Sleeper::spin`] rests between its looks at the clock (TPAUSE of `waitpkg`).
    pub fn rests_while_spinning(&self) -> bool {
        self.pause == Pause::Timed
    }

    /// Gives up the core for `ask` by the monotonic clock, which neither steps nor runs while the machine is suspended.
    /// Takes longer by what [`SleepProfile`](super::SleepProfile) shows; a signal ends it early.
    #[inline]
    pub fn sleep(&self, ask: Duration) {
        let request = Timespec {
            tv_sec: i64::try_from(ask.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: ask.subsec_nanos().into(),
        };
        // The only error is the signal's.
        let _ = clock_nanosleep_relative(ClockId::Monotonic, &request);
    }

    /// Keeps the core for `time`, which is meant to be shorter than any sleep.
    #[inline]
    pub fn spin(&self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.pause.once();
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock.

    use super::*;

    #[test]
    fn a_sleep_and_a_spin_take_at_least_what_was_asked() {
        let clock = Clock::new();
        let sleeper = Sleeper::new(clock);
        assert_eq!(sleeper.slack(), Ok(()));
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(300)] {
            for wait in [Sleeper::sleep, Sleeper::spin] {
                let start = std::time::Instant::now();
                wait(&sleeper, time);
                // The two clocks agree within a hundredth.
                assert!(start.elapsed() >= time.mul_f64(0.99), "{time:?}");
            }
        }
    }

    #[test]
    fn a_refused_slack_is_told_and_the_sleep_goes_on() {
        let clock = Clock::new();
        let refused = std::thread::spawn(move || {
            crate::sys::seccomp::refuse_timer_slack();
            let sleeper = Sleeper::new(clock);
            let start = std::time::Instant::now();
            sleeper.sleep(Duration::from_micros(100));
            assert!(start.elapsed() >= Duration::from_micros(99));
            sleeper.slack()
        });
        let refused = refused.join().unwrap().unwrap_err();
        assert_eq!(refused.errno, Some(Errno::PERM));
        assert!(refused.slack > Duration::from_nanos(1));
        let text = refused.to_string();
        assert!(text.contains("refused a timer slack of 1 ns (not permitted)"), "{text}");
    }
}
