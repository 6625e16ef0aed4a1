//! The benchmark of moving shards moves shards, under load, and loses nothing. How long that takes is not
//! for a test to say.

use std::time::Duration;

use rheostat_bench::migrate::MigrateBench;

#[test]
fn shards_move_under_load_and_nothing_is_lost() {
    let bench = MigrateBench {
        migrations: 500,
        lanes: 3,
        packets_per_second: 20_000,
        seed: 1,
        limit: Duration::from_secs(300),
    };
    let row = bench.run().expect("a sound run");
    assert!(row.migrations >= 500 && row.packets > 0, "{row:?}");
    assert_eq!((row.duplicated, row.reordered, row.late_handoff), (0, 0, 0), "{row:?}");
    assert_eq!(row.lost, 0, "{row:?}");
    assert!(row.moved_us_p50 <= row.moved_us_p99, "{row:?}");
}

#[test]
fn moves_that_take_too_long_are_an_error_that_says_how_far_it_came() {
    let bench = MigrateBench {
        migrations: u64::MAX,
        lanes: 2,
        packets_per_second: 1_000,
        seed: 1,
        limit: Duration::from_millis(50),
    };
    let error = bench.run().expect_err("nobody moves so many").to_string();
    assert!(error.contains("of 18446744073709551615 shards were moved in 50ms"), "{error}");
}
