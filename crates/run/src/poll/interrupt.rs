//! Polling by interrupt: an idle worker blocks until one of its devices has packets.

use std::time::Duration;

use rheostat_base::Time;

use super::{Next, PollOutcome, PollPolicy};

/// Polls lanes 0 to `lanes − 1` in turn, and waits once they have been idle for a while.
#[derive(Clone, Debug)]
pub struct Interrupt {
    lanes: usize,
    current: usize,
    /// How long lanes are polled without finding anything before the worker blocks: waking it costs
    /// more than a few empty polls.
    spin: Duration,
    idle_since: Option<Time>,
    /// Empty polls since a lane had packets, or since the worker waited.
    idle_polls: usize,
}

impl Interrupt {
    /// A policy for a worker with `lanes` lanes, which goes on polling for `spin` after the last packet.
    pub fn new(lanes: usize, spin: Duration) -> Interrupt {
        assert!(lanes > 0, "a worker has at least one lane");
        Interrupt { lanes, current: lanes - 1, spin, idle_since: None, idle_polls: 0 }
    }
}

impl PollPolicy for Interrupt {
    fn next(&mut self, outcome: PollOutcome, now: Time) -> Next {
        if outcome.packets > 0 {
            self.idle_since = None;
            self.idle_polls = 0;
        } else {
            let since = *self.idle_since.get_or_insert(now);
            // All lanes since the worker last woke: it does not know which of them woke it.
            if self.idle_polls >= self.lanes && now.since(since) >= self.spin {
                self.idle_polls = 0;
                return Next::Wait;
            }
            self.idle_polls += 1;
        }
        self.current += 1;
        if self.current >= self.lanes {
            self.current = 0;
        }
        Next::Run(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: PollOutcome = PollOutcome { packets: 0, next_deadline: None };
    const BUSY: PollOutcome = PollOutcome { packets: 1, next_deadline: None };
    const US: fn(u64) -> Time = |us| Time::from_nanos(us * 1_000);

    #[test]
    fn it_waits_once_all_lanes_were_idle_for_the_spin() {
        let mut policy = Interrupt::new(2, Duration::from_micros(10));
        assert_eq!(policy.next(IDLE, US(0)), Next::Run(0));
        assert_eq!(policy.next(IDLE, US(1)), Next::Run(1));
        assert_eq!(policy.next(IDLE, US(9)), Next::Run(0));
        assert_eq!(policy.next(BUSY, US(10)), Next::Run(1));
        assert_eq!(policy.next(IDLE, US(11)), Next::Run(0));
        assert_eq!(policy.next(IDLE, US(20)), Next::Run(1));
        assert_eq!(policy.next(IDLE, US(21)), Next::Wait);
    }

    #[test]
    fn after_waking_it_looks_at_every_lane_before_it_waits_again() {
        let mut policy = Interrupt::new(2, Duration::ZERO);
        let looks: Vec<_> = (0..7).map(|_| policy.next(IDLE, US(5))).collect();
        use Next::{Run, Wait};
        assert_eq!(looks, [Run(0), Run(1), Wait, Run(0), Run(1), Wait, Run(0)]);
    }
}
