//! Timed: threads, sleep, clock.

use super::*;

#[test]
fn bins_are_those_that_came_between_two_samples() {
    let polling = |bins: &[(u64, u64)]| LanePolling {
        mode: rheostat_run::poll::metronome::Mode::Metronome,
        spent: Default::default(),
        tries: 0,
        lost: 0,
        target: None,
        vacations: rheostat_run::Vacations { bins: bins.to_vec(), ..Default::default() },
        won_by_other: 0,
    };
    let (then, now) = (polling(&[(10, 3), (30, 1)]), polling(&[(10, 5), (20, 2), (30, 1)]));
    assert_eq!(bins_between(&then, &now), [(10, 2), (20, 2)]);
}
