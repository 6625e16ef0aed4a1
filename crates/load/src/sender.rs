//! The thread that sends what is due.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ledger::Expected;
use crate::link::{LoadLink, SentRequest, lock};
use crate::protocol::Protocol;
use crate::schedule::{Due, Finished, Schedule};

/// How long it sleeps at most, so that it notices that the run is over.
const LONGEST_SLEEP: u64 = 50_000_000;
/// How late the last requests of a run may be sent, in nanoseconds.
const GRACE: u64 = 100_000_000;
/// How long it sleeps when no connection takes a request, in nanoseconds.
const BLOCKED_SLEEP: u64 = 20_000;

/// What sends.
#[derive(Debug)]
pub(crate) struct LoadSender<'a> {
    pub(crate) links: &'a [Mutex<LoadLink>],
    pub(crate) protocol: &'a Protocol,
    pub(crate) epoch: Instant,
    /// Requests under way on a connection at most.
    pub(crate) outstanding: usize,
    /// Whether it never sleeps.
    pub(crate) spins: bool,
    /// The number of the next request.
    pub(crate) number: &'a mut u64,
    /// The connection to try first.
    pub(crate) cursor: &'a mut usize,
}

impl LoadSender<'_> {
    /// Sends until the schedule ends, or one of `over` is set.
    pub(crate) fn run(
        &mut self,
        mut schedule: Schedule,
        end: u64,
        over: [&AtomicBool; 2],
    ) -> Finished {
        let mut request = Vec::new();
        loop {
            let now = self.now();
            // Relaxed: nothing is read that was written before.
            if now >= end || over.iter().any(|over| over.load(Ordering::Relaxed)) {
                self.send_rest(&mut schedule, now.min(end), &mut request);
                return schedule.finish(now);
            }
            schedule.advance(now);
            let mut is_blocked = false;
            while let Some(due) = schedule.front() {
                if !self.send(due, &mut request) {
                    is_blocked = true;
                    break;
                }
                let now = self.now();
                schedule.sent(now);
                schedule.advance(now);
            }
            let pause = schedule.next_due().saturating_sub(self.now());
            let pause = if is_blocked { BLOCKED_SLEEP } else { pause.min(LONGEST_SLEEP) };
            if is_blocked {
                for link in self.links {
                    lock(link).flush();
                }
            }
            if self.spins {
                std::hint::spin_loop();
            } else if pause > 0 {
                thread::sleep(Duration::from_nanos(pause));
            }
        }
    }

    /// Sends what became due while this thread slept, at the end; not what had to wait for long before, which was not offered.
    fn send_rest(&mut self, schedule: &mut Schedule, end: u64, request: &mut Vec<u8>) {
        schedule.advance(end);
        while let Some(due) = schedule.front() {
            let now = self.now();
            if now.saturating_sub(due.at) > GRACE || !self.send(due, request) {
                return;
            }
            schedule.sent(now);
        }
    }

    /// Sends on the next connection that takes it.
    fn send(&mut self, due: Due, request: &mut Vec<u8>) -> bool {
        let expected = Expected { due: due.at, class: due.class, number: *self.number };
        request.clear();
        self.protocol.write(expected.number, due.class, due.draw, request);
        let count = self.links.len();
        for turn in 0..count {
            let at = (*self.cursor + turn) % count;
            if lock(&self.links[at]).send(request, expected, self.outstanding) == SentRequest::Yes {
                *self.cursor = (at + 1) % count;
                *self.number += 1;
                return true;
            }
        }
        false
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}
