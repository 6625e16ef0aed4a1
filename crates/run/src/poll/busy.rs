//! Busy polling: the worker never sleeps and gives its lanes turns.

use rheostat_base::Time;

use super::{Next, PollOutcome, PollPolicy, Polling, PollingRegistration};

pub(super) const REGISTRATION: PollingRegistration = PollingRegistration {
    name: "busy",
    summary: "poll on",
    keys: Vec::new,
    read: &|_, _| Busy::polling(),
};

/// Polls lanes 0 to `lanes − 1` in turn, for ever.
#[derive(Clone, Debug)]
pub struct Busy {
    lanes: usize,
    current: usize,
}

impl Busy {
    /// A policy for a worker with `lanes` lanes.
    pub fn new(lanes: usize) -> Busy {
        assert!(lanes > 0, "a worker has at least one lane");
        Busy { lanes, current: 0 }
    }

    /// Workers that never sleep.
    pub fn polling() -> Polling {
        Polling::new(REGISTRATION.name, Busy::new).without_sleep()
    }
}

/// Workers poll on where nothing else is configured.
impl Default for Polling {
    fn default() -> Polling {
        Busy::polling()
    }
}

impl PollPolicy for Busy {
    fn next(&mut self, _: PollOutcome, _: Time) -> Next {
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

    #[test]
    fn lanes_take_turns() {
        let mut policy = Busy::new(3);
        let order: Vec<_> =
            (0..6).map(|_| policy.next(PollOutcome::default(), Time::ZERO)).collect();
        assert_eq!(order, [1, 2, 0, 1, 2, 0].map(Next::Run));
    }
}
