//! The seeds that a test tries.

use std::ops::Range;

/// The first `usual` seeds. `RHEO_SEED=n` wants that one alone, `RHEO_SEEDS=n` the first n.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    match number("RHEO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RHEO_SEEDS").unwrap_or(usual),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}
