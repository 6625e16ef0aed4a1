//! Timed: threads, sleep, clock.

use rheostat_traffic::Source;

use super::*;
use crate::datagrams::Spacing;

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

#[test]
fn arrivals_have_the_rates_of_all_lanes_from_the_first_one_on() {
    let ms = Duration::from_millis;
    let rates = [(ms(10), 1e6), (ms(20), 2e6), (ms(30), 0.0)];
    let source = Datagrams::new(FLOWS, Spacing::Constant, 1.0, 1);
    let mut source = Stepped::new(source, steps(&rates, 2.0)).unwrap();
    let mut frame = Vec::new();
    let times: Vec<_> = std::iter::from_fn(|| source.next(&mut frame))
        .map(|arrival| arrival.time.since(Time::ZERO))
        .collect();
    let count = |from, until| times.iter().filter(|time| (from..until).contains(*time)).count();
    assert_eq!(times[0], ms(10));
    assert_eq!(count(ms(10), ms(20)), 20_000);
    assert_eq!(count(ms(20), ms(30)), 40_000);
    assert_eq!(times.len(), 60_000, "none under a rate of zero");
}
