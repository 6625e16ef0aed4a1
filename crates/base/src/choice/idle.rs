//! What a worker does that has nothing to do, and how many sleeping workers are woken when there is more work.

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    /// Look at its queues again at once.
    Spin,
    /// Look at its queues again after a short pause of the core, which leaves execution units and cache lines to others.
    Pause,
    /// Sleep until it is woken, after a last look at its queues.
    Sleep,
}

/// When a worker whose queues are empty spins, pauses and sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePolicy {
    /// Looks without a pause.
    pub spins: u32,
    /// Looks with a pause, after these.
    pub pauses: u32,
    /// Whether a worker sleeps after that; otherwise it goes on with pauses.
    pub sleeps: bool,
}

impl IdlePolicy {
    /// Never sleeps: what a machine with a core for each worker uses for the lowest latency.
    pub const POLLING: IdlePolicy = IdlePolicy { spins: 64, pauses: 0, sleeps: false };
    /// Looks for some microseconds, then sleeps.
    pub const SLEEPING: IdlePolicy = IdlePolicy { spins: 64, pauses: 256, sleeps: true };

    /// What a worker does that has looked `empty_looks` times in a row without finding anything, while `waiting` requests are in the
    /// queues that it may take from. Work that waits is never slept beside: a worker that lost a race for it looks again.
    pub fn next(self, empty_looks: u32, waiting: u32) -> IdleAction {
        if empty_looks < self.spins {
            IdleAction::Spin
        } else if waiting > 0 || !self.sleeps || empty_looks - self.spins < self.pauses {
            IdleAction::Pause
        } else {
            IdleAction::Sleep
        }
    }
}

/// How many of `asleep` members to wake for `waiting` requests that no member has taken, while `looking` idle members are about to
/// look: one for each request that no idle member is there for.
pub fn members_to_wake(waiting: u32, looking: u32, asleep: u32) -> u32 {
    waiting.saturating_sub(looking).min(asleep)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_worker_spins_then_pauses_then_sleeps() {
        let policy = IdlePolicy { spins: 2, pauses: 2, sleeps: true };
        let actions: Vec<_> = (0..5).map(|looks| policy.next(looks, 0)).collect();
        use IdleAction::{Pause, Sleep, Spin};
        assert_eq!(actions, [Spin, Spin, Pause, Pause, Sleep]);
        assert_eq!(IdlePolicy::POLLING.next(u32::MAX, 0), Pause);
        assert_eq!(IdlePolicy::SLEEPING.next(u32::MAX, 0), Sleep);
    }

    proptest! {
        #[test]
        fn nobody_sleeps_beside_work(
            (spins, pauses, sleeps) in any::<(u32, u32, bool)>(),
            looks in any::<u32>(),
            waiting in 1_u32..,
        ) {
            let policy = IdlePolicy { spins, pauses, sleeps };
            prop_assert_ne!(policy.next(looks, waiting), IdleAction::Sleep);
        }

        #[test]
        fn actions_never_go_back(
            (spins, pauses, sleeps) in (0_u32..50, 0_u32..50, any::<bool>()),
        ) {
            let policy = IdlePolicy { spins, pauses, sleeps };
            let rank = |action| match action {
                IdleAction::Spin => 0,
                IdleAction::Pause => 1,
                IdleAction::Sleep => 2,
            };
            let ranks: Vec<u8> = (0..120).map(|looks| rank(policy.next(looks, 0))).collect();
            prop_assert!(ranks.is_sorted());
            prop_assert_eq!(ranks.last(), Some(&if sleeps { 2 } else { 1 }));
        }

        #[test]
        fn everybody_wakes_or_everything_has_a_taker(
            waiting in 0_u32..100,
            looking in 0_u32..100,
            asleep in 0_u32..100,
        ) {
            // By hand: each request first gets an idle member, then one that is woken.
            let (mut left, mut woken) = (looking, 0);
            for _ in 0..waiting {
                if left > 0 {
                    left -= 1;
                } else if woken < asleep {
                    woken += 1;
                }
            }
            prop_assert_eq!(members_to_wake(waiting, looking, asleep), woken);
        }
    }
}
