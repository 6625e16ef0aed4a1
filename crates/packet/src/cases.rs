//! How many cases property tests try.

use proptest::test_runner::Config;

/// As many as usual; a few under Miri, which is some thousand times slower and has no files.
pub(crate) fn config() -> Config {
    if cfg!(miri) {
        Config { cases: 4, failure_persistence: None, ..Config::default() }
    } else {
        Config::default()
    }
}
