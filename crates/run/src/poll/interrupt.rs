//! Polling by interrupt: an idle worker blocks until one of its devices has packets.

use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_base::Time;

use rheostat_settings::declared::kind::duration;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::Table;

use super::metronome::Mode;
use super::{Next, PollOutcome, PollPolicy, Polling, PollingRegistration};

pub(super) const REGISTRATION: PollingRegistration = PollingRegistration {
    name: "interrupt",
    summary: "block until a packet comes",
    keys: || Keys::new().settings(),
    read: &read,
};

/// A few times what it takes to wake a worker.
const SPIN: Duration = Duration::from_micros(20);

/// After so many idle times in a row that outlasted the spin, most are not spun through.
const VAIN: u32 = 4;
/// Then every so many, so that shorter gaps are noticed.
const TRIAL: u32 = 16;

/// Polls lanes 0 to `lanes − 1` in turn, and waits once they have been idle for a while.
///
/// Polling through a gap between packets saves a wake-up if the gap is short, and is wasted if it is not. So the gaps tell: where the
/// spin has found nothing a few times in a row, the worker waits at once, and tries one gap in sixteen.
#[derive(Clone, Debug)]
pub struct Interrupt {
    lanes: usize,
    current: usize,
    /// How long lanes are polled at most without finding anything before the worker blocks: waking it costs
    /// more than a few empty polls.
    spin: Duration,
    /// Idle times since one ended within the spin.
    vain: u32,
    idle_since: Option<Time>,
    /// Whether the worker has waited since.
    has_waited: bool,
    /// Empty polls since a lane had packets, or since the worker waited.
    idle_polls: usize,
}

impl Interrupt {
    /// A policy for a worker with `lanes` lanes, which goes on polling for `spin` after the last packet.
    pub fn new(lanes: usize, spin: Duration) -> Interrupt {
        assert!(lanes > 0, "a worker has at least one lane");
        let current = lanes - 1;
        Interrupt {
            lanes,
            current,
            spin,
            vain: 0,
            idle_since: None,
            has_waited: false,
            idle_polls: 0,
        }
    }

    /// Workers that block once they have polled for `spin` without finding a packet.
    pub fn polling(spin: Duration) -> Polling {
        Polling::new(REGISTRATION.name, move |lanes| Interrupt::new(lanes, spin))
            .described(format!("interrupt after {}", Span(spin)))
            .in_mode(Mode::Interrupt)
    }

    /// How long to poll on now.
    fn patience(&self) -> Duration {
        let is_trial = self.vain < VAIN || self.vain == VAIN + TRIAL - 1;
        if is_trial { self.spin } else { Duration::ZERO }
    }
}

fn read(table: &mut Table<'_>, findings: &mut Findings) -> Polling {
    Interrupt::polling(Keys::new().spin.read_or_default(table, findings))
}

const SPINS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(100);

rheostat_settings::keys! {
    struct Keys {
        /// How long a worker without packets polls before it blocks.
        spin: Duration = duration(SPINS), default(SPIN);
    }
}

impl PollPolicy for Interrupt {
    fn next(&mut self, outcome: PollOutcome, now: Time) -> Next {
        if outcome.packets > 0 {
            if self.idle_since.is_some() && !self.has_waited {
                // Found by polling on.
                self.vain = 0;
            }
            self.idle_since = None;
            self.has_waited = false;
            self.idle_polls = 0;
        } else {
            let since = *self.idle_since.get_or_insert(now);
            // All lanes since the worker last woke: it does not know which of them woke it.
            if self.idle_polls >= self.lanes && now.since(since) >= self.patience() {
                self.idle_polls = 0;
                if !std::mem::replace(&mut self.has_waited, true) {
                    self.vain = if self.vain + 1 < VAIN + TRIAL { self.vain + 1 } else { VAIN };
                }
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

    /// Packets that come `gap` apart, and for how long the worker polled on behind each before it waited, if it did.
    fn spins(policy: &mut Interrupt, gap: u64, packets: u64, from: u64) -> Vec<Option<u64>> {
        let one = |packet| {
            let begin = from + packet * gap;
            policy.next(BUSY, US(begin));
            (begin..begin + gap)
                .find(|us| policy.next(IDLE, US(*us)) == Next::Wait)
                .map(|us| us - begin)
        };
        (0..packets).map(one).collect()
    }

    #[test]
    fn gaps_longer_than_the_spin_are_soon_waited_through_at_once() {
        let mut policy = Interrupt::new(1, Duration::from_micros(10));
        let polled_on = spins(&mut policy, 100, 100, 0);
        assert_eq!(polled_on[..4], [Some(10); 4]);
        assert_eq!(polled_on[4..19], [Some(1); 15]);
        assert_eq!(polled_on.iter().filter(|spin| **spin == Some(10)).count(), 4 + 96 / 16);
        // What comes more often than that is noticed within sixteen gaps, and polled for.
        let polled_on = spins(&mut policy, 5, 100, 100_000);
        let waited = polled_on.iter().filter(|spin| spin.is_some()).count();
        assert!(waited < 16, "{polled_on:?}");
        assert_eq!(polled_on[16..], [None; 84]);
    }

    #[test]
    fn after_waking_it_looks_at_every_lane_before_it_waits_again() {
        let mut policy = Interrupt::new(2, Duration::ZERO);
        let looks: Vec<_> = (0..7).map(|_| policy.next(IDLE, US(5))).collect();
        use Next::{Run, Wait};
        assert_eq!(looks, [Run(0), Run(1), Wait, Run(0), Run(1), Wait, Run(0)]);
    }
}
