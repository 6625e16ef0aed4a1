//! Sleeps that grow while there is little to do: the rule that packet processors ship today, to compare with.

use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_base::Time;

use rheostat_settings::declared::kind::duration;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::Table;

use super::{Next, PollOutcome, PollPolicy, Polling, PollingRegistration};

pub(super) const REGISTRATION: PollingRegistration = PollingRegistration {
    name: "step-sleep",
    summary: "sleep longer and longer, to compare with",
    keys: || Keys::new().settings(),
    read: &read,
};

/// The longest sleep, as users of this rule set it.
const MAX_SLEEP: Duration = Duration::from_micros(100);

/// Packets of a poll from which on a lane counts as loaded.
const FEW: usize = 16;
/// By how much a sleep is longer than the one before.
const STEP: Duration = Duration::from_micros(1);

/// Polls lanes 0 to `lanes − 1` in turn. After a round in which each had fewer than 16 packets it sleeps, a microsecond
/// longer each time, up to a maximum; a lane with more resets that (`pmd-sleep-max` of Open vSwitch).
///
/// Knows nothing of a target: how late packets are depends on how long it had little to do.
#[derive(Clone, Debug)]
pub struct StepSleep {
    lanes: usize,
    current: usize,
    most: Duration,
    sleep: Duration,
    /// A lane of this round had more than a few packets.
    loaded: bool,
    /// The round was over at the last call, and its sleep was decided.
    slept: bool,
}

impl StepSleep {
    /// A policy for a worker with `lanes` lanes that sleeps for at most `most`.
    pub fn new(lanes: usize, most: Duration) -> StepSleep {
        assert!(lanes > 0, "a worker has at least one lane");
        StepSleep { lanes, current: 0, most, sleep: Duration::ZERO, loaded: false, slept: true }
    }

    /// Workers that sleep a microsecond longer after each round of few packets, up to `most`.
    pub fn polling(most: Duration) -> Polling {
        Polling::new(REGISTRATION.name, move |lanes| StepSleep::new(lanes, most))
            .described(format!("step-sleep up to {}", Span(most)))
    }
}

fn read(table: &mut Table<'_>, findings: &mut Findings) -> Polling {
    StepSleep::polling(Keys::new().max_sleep.read_or_default(table, findings))
}

const SLEEPS: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_millis(10);

rheostat_settings::keys! {
    struct Keys {
        /// The longest sleep.
        max_sleep: Duration = duration(SLEEPS), default(MAX_SLEEP);
    }
}

impl PollPolicy for StepSleep {
    fn next(&mut self, outcome: PollOutcome, _: Time) -> Next {
        if std::mem::take(&mut self.slept) {
            return Next::Run(self.current);
        }
        self.loaded |= outcome.packets >= FEW;
        self.current += 1;
        if self.current >= self.lanes {
            self.current = 0;
            if std::mem::take(&mut self.loaded) {
                self.sleep = Duration::ZERO;
            } else {
                self.sleep = (self.sleep + STEP).min(self.most);
                self.slept = true;
                return Next::Sleep(self.sleep);
            }
        }
        Next::Run(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(policy: &mut StepSleep, packets: usize) -> Next {
        policy.next(PollOutcome { packets, next_deadline: None }, Time::ZERO)
    }

    const US: fn(u64) -> Next = |us| Next::Sleep(Duration::from_micros(us));

    #[test]
    fn sleeps_grow_by_a_microsecond_up_to_the_maximum() {
        let mut policy = StepSleep::new(1, Duration::from_micros(3));
        let steps: Vec<_> = (0..9).map(|_| next(&mut policy, 0)).collect();
        use Next::Run;
        assert_eq!(steps, [Run(0), US(1), Run(0), US(2), Run(0), US(3), Run(0), US(3), Run(0)]);
    }

    #[test]
    fn a_loaded_lane_resets_the_sleep_of_all() {
        let mut policy = StepSleep::new(2, Duration::from_micros(100));
        next(&mut policy, 0);
        let round = |policy: &mut StepSleep, packets: [usize; 2]| {
            assert_eq!(next(policy, packets[0]), Next::Run(1));
            let after = next(policy, packets[1]);
            if after != Next::Run(0) {
                assert_eq!(next(policy, 0), Next::Run(0));
            }
            after
        };
        assert_eq!(round(&mut policy, [15, 15]), US(1));
        assert_eq!(round(&mut policy, [0, 3]), US(2));
        assert_eq!(round(&mut policy, [0, 16]), Next::Run(0));
        assert_eq!(round(&mut policy, [16, 0]), Next::Run(0));
        assert_eq!(round(&mut policy, [0, 0]), US(1));
    }
}
