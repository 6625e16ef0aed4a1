//! What balancing costs can be measured: runs of both kinds are sound, nothing moves, and the interval holds
//! the median. How much it is, is not for a test to say.
//!
//! Timed: threads, sleep, clock.

use std::time::Duration;

use rheostat_lab::idle::IdleBench;
use rheostat_measure::nf::ChainKind;

#[test]
fn rows_tell_the_cost_of_balancing_what_is_even() {
    let chains = [ChainKind::Placed, ChainKind::Firewall];
    let rows = |window| {
        let bench = IdleBench { windows: 2, window, flows: 1_000, seed: 1 };
        let mut shown = 0;
        let rows = bench.run(&chains, &[1], |_| shown += 1).expect("sound runs");
        assert_eq!((rows.len(), shown), (2, 2));
        rows
    };
    // There is time for several plans in each of the runs, unless the controller is kept from its core.
    let rows = (0..8_u32)
        .map(|longer| rows(Duration::from_millis(150_u64 << longer)))
        .find(|rows| rows.iter().all(|row| row.plans >= 1))
        .expect("the controller plans");
    for (row, chain) in rows.iter().zip(chains) {
        assert_eq!((row.chain.as_str(), row.lanes, row.windows), (chain.name(), 1, 2));
        assert!(row.ns_static > 0.0 && row.ns_balanced > 0.0, "{row:?}");
        assert!(row.cost_low <= row.cost && row.cost <= row.cost_high, "{row:?}");
        assert!(row.cost.is_finite(), "{row:?}");
        assert_eq!(row.withheld, 0, "there is no lane to give shards to");
    }
}
