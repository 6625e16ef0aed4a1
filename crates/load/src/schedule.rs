//! What is due, and what became of it before it was sent.

use std::collections::VecDeque;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::arrivals::Arrivals;
use crate::classes::ClassMix;
use crate::latencies::Latencies;

/// Requests that wait to be sent at most; one that is due beyond is not sent.
const BACKLOG: usize = 1 << 20;
/// A request that is sent so much after it was due, in nanoseconds, is late.
pub const LATE: u64 = 1_000_000;

/// From when to when requests are measured, in nanoseconds, by the moment they are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub from: u64,
    /// The moment behind the last.
    pub to: u64,
}

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: u64,
    /// Its class.
    pub class: u8,
    /// A uniform random number, for servers that draw.
    pub draw: u64,
}

/// What became of requests.
#[derive(Clone, Debug, Default)]
pub struct SendCounts {
    /// Due.
    pub due: u64,
    /// Sent, whenever that was.
    pub sent: u64,
    /// Not sent by the end.
    pub not_sent: u64,
    /// Sent more than a millisecond after they were due.
    pub late: u64,
    /// From the moment a request was due to its sending, in nanoseconds.
    pub lateness: Latencies,
}

/// What became of all requests of a run.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Of those that were due before the window: the warm-up.
    pub warm_up: SendCounts,
    /// Of those that were due in the window.
    pub measured: SendCounts,
    /// When it ended.
    pub at: u64,
}

/// The requests of a run, in the order in which they are due.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    mix: ClassMix,
    random: SmallRng,
    window: Window,
    next: Due,
    backlog: VecDeque<Due>,
    warm_up: SendCounts,
    measured: SendCounts,
}

impl Window {
    /// Whether a moment lies in it.
    pub fn has(&self, at: u64) -> bool {
        (self.from..self.to).contains(&at)
    }

    /// Seconds.
    pub fn seconds(&self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / 1e9
    }
}

impl Schedule {
    /// Ends with the window.
    pub fn new(arrivals: Arrivals, mix: ClassMix, window: Window, seed: u64) -> Schedule {
        let random = SmallRng::seed_from_u64(seed ^ 0x5bd1_e995);
        let mut schedule = Schedule {
            arrivals,
            mix,
            random,
            window,
            next: Due { at: 0, class: 0, draw: 0 },
            backlog: VecDeque::new(),
            warm_up: SendCounts::default(),
            measured: SendCounts::default(),
        };
        schedule.draw();
        schedule
    }

    fn draw(&mut self) {
        let at = self.arrivals.next().unwrap_or(u64::MAX);
        let class = self.mix.pick(self.random.random());
        self.next = Due { at, class, draw: self.random.random() };
    }

    fn counts(&mut self, at: u64) -> &mut SendCounts {
        if at < self.window.from { &mut self.warm_up } else { &mut self.measured }
    }

    /// Lets requests become due that are so by `now`.
    pub fn advance(&mut self, now: u64) {
        while self.next.at <= now && self.next.at < self.window.to {
            let next = self.next;
            self.counts(next.at).due += 1;
            match self.backlog.len() < BACKLOG {
                true => self.backlog.push_back(next),
                false => self.counts(next.at).not_sent += 1,
            }
            self.draw();
        }
    }

    /// The request to send first.
    pub fn front(&self) -> Option<Due> {
        self.backlog.front().copied()
    }

    /// The first was sent.
    pub fn sent(&mut self, now: u64) {
        let Some(due) = self.backlog.pop_front() else { return };
        let lateness = now.saturating_sub(due.at);
        let counts = self.counts(due.at);
        counts.sent += 1;
        counts.late += u64::from(lateness > LATE);
        counts.lateness.record(lateness);
    }

    /// When the next request becomes due, or the window ends.
    pub fn next_due(&self) -> u64 {
        self.next.at.min(self.window.to)
    }

    /// Ends, `now` or with the window: what was due and was not sent is counted.
    pub fn finish(mut self, now: u64) -> Finished {
        self.window.to = self.window.to.min(now);
        self.advance(now);
        for due in std::mem::take(&mut self.backlog) {
            self.counts(due.at).not_sent += 1;
        }
        Finished { warm_up: self.warm_up, measured: self.measured, at: now }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrivals::ArrivalProcess;

    fn arrivals(rate: f64) -> Arrivals {
        Arrivals::new(ArrivalProcess::Exponential, rate, 0, 5)
    }

    proptest! {
        /// A sender that comes round at any times and sends any number each time.
        #[test]
        fn every_request_is_sent_or_counted_as_not_sent(
            rate in 1e3..1e6_f64,
            from in 0..5_000_000_u64,
            rounds in prop::collection::vec((0..400_000_u64, 0..200_usize), 1..40),
            end in 1_000_000..12_000_000_u64,
        ) {
            let window = Window { from, to: 10_000_000 };
            let mut schedule = Schedule::new(arrivals(rate), ClassMix::default(), window, 1);
            let (mut now, mut sent, mut late) = (0, Vec::new(), 0);
            for (pause, count) in rounds {
                now += pause;
                if now >= end {
                    break;
                }
                schedule.advance(now);
                for _ in 0..count {
                    let Some(due) = schedule.front() else { break };
                    prop_assert!(due.at <= now);
                    late += u64::from(window.has(due.at) && now - due.at > LATE);
                    sent.push(due.at);
                    schedule.sent(now);
                }
            }
            prop_assert!(sent.is_sorted());
            let finished = schedule.finish(end.max(now));
            let (counts, warm_up) = (finished.measured, finished.warm_up);
            let last = window.to.min(end.max(now));
            let measured = |at: &u64| (from..last).contains(at);
            let due = arrivals(rate).take_while(|at| *at < last).filter(measured).count() as u64;
            prop_assert_eq!(counts.due, due);
            prop_assert_eq!(counts.sent, sent.iter().filter(|at| measured(at)).count() as u64);
            prop_assert_eq!(counts.sent + counts.not_sent, counts.due);
            prop_assert_eq!(counts.late, late);
            prop_assert_eq!(counts.lateness.count(), counts.sent);
            prop_assert_eq!(warm_up.sent + warm_up.not_sent, warm_up.due);
            prop_assert_eq!(warm_up.sent + counts.sent, sent.len() as u64);
        }
    }

    #[test]
    fn a_backlog_is_bounded_and_what_is_beyond_is_not_sent() {
        let window = Window { from: 0, to: 2_000_000_000 };
        let mut schedule = Schedule::new(arrivals(1e6), ClassMix::default(), window, 1);
        schedule.advance(2_000_000_000);
        assert_eq!(schedule.backlog.len(), BACKLOG);
        let counts = schedule.finish(u64::MAX).measured;
        assert_eq!((counts.sent, counts.not_sent), (0, counts.due));
        assert!(counts.due > 1_900_000);
    }

    #[test]
    fn nothing_becomes_due_behind_the_window() {
        let window = Window { from: 0, to: 1_000_000 };
        let mut schedule = Schedule::new(arrivals(1e6), ClassMix::default(), window, 1);
        schedule.advance(u64::MAX);
        assert!(schedule.backlog.iter().all(|due| due.at < window.to));
        assert_eq!(schedule.next_due(), window.to);
    }
}
