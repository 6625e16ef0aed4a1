//! The benchmark of moving shards moves shards, under load, and loses nothing. How long that takes is not
//! for a test to say.
//!
//! Timed: threads, sleep, clock.

use std::num::NonZeroU32;
use std::time::Duration;

use rheostat_lab::migrate::{DESCRIPTORS, MigrateBench};

#[test]
fn shards_move_under_load_and_nothing_is_lost() {
    let bench = MigrateBench {
        migrations: 500,
        lanes: 3,
        packets_per_second: 20_000,
        seed: 1,
        descriptors: DESCRIPTORS,
        limit: Duration::from_secs(300),
        sabotage: None,
    };
    let row = bench.run().expect("a sound run");
    assert!(row.migrations >= 500 && row.packets > 0, "{row:?}");
    assert_eq!((row.duplicated, row.reordered, row.late_handoff), (0, 0, 0), "{row:?}");
    assert_eq!(row.lost, 0, "{row:?}");
    assert!(row.is_sound(), "{row:?}");
    assert!(row.moved_us_p50 <= row.moved_us_p99, "{row:?}");
}

#[test]
fn moves_that_take_too_long_are_an_error_that_says_how_far_it_came() {
    let bench = MigrateBench {
        migrations: u64::MAX,
        lanes: 2,
        packets_per_second: 1_000,
        seed: 1,
        descriptors: DESCRIPTORS,
        limit: Duration::from_millis(50),
        sabotage: None,
    };
    let error = bench.run().expect_err("no run moves so many").to_string();
    assert!(error.contains("of 18446744073709551615 shards were moved in 50ms"), "{error}");
}

/// Packets arrive in queues that are shorter than what is due when lanes start, and faster than lanes process them. All that is
/// due when the last shard has moved is still delivered: at ten times the rate, that took most of the test's time.
#[test]
fn overload_is_counted_by_reason_and_is_not_a_loss() {
    let bench = MigrateBench {
        migrations: 10,
        lanes: 2,
        packets_per_second: 10_000_000,
        seed: 1,
        descriptors: 32,
        limit: Duration::from_secs(300),
        sabotage: None,
    };
    let row = bench.run().expect("a sound run");
    assert!(row.dropped.get("queue_full") > Some(&0), "{row:?}");
    assert_eq!(row.lost, 0, "{row:?}");
}

#[test]
fn packets_that_vanish_without_a_count_are_lost() {
    let bench = MigrateBench {
        migrations: 100,
        lanes: 2,
        packets_per_second: 20_000,
        seed: 1,
        descriptors: DESCRIPTORS,
        limit: Duration::from_secs(300),
        sabotage: NonZeroU32::new(10),
    };
    let row = bench.run().expect("a run whose counters hold");
    assert!(row.lost > 0 && row.lost <= row.packets / 10 + 1, "{row:?}");
    assert!(!row.is_sound(), "{row:?}");
}
