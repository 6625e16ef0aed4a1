//! Options that commands which measure have in common.

use rheostat_base::unit::parse_count;

/// What everything random in a benchmark is drawn from, so that two runs see the same packets.
pub const SEED: u64 = 1;

/// The numbers of lanes: one and two as far as there are cores, unless the options select others.
pub fn lanes(asked: &[u16]) -> Vec<usize> {
    let cores = rheostat_kernel::CoreSet::available().map_or(1, |set| set.cores().len());
    match asked {
        [] => [1, 2].into_iter().filter(|&lanes| lanes <= cores).collect(),
        lanes => lanes.iter().map(|&lanes| lanes.into()).collect(),
    }
}

/// The values `given`, or without any the first `most` of `default`.
pub fn given<T: Copy>(given: Vec<T>, default: &[T], most: usize) -> Vec<T> {
    if given.is_empty() { default.iter().copied().take(most).collect() } else { given }
}

/// Reads a number from 1 on, such as 200k.
///
/// # Errors
/// What a number has to be.
pub fn moves(text: &str) -> Result<u64, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    if count == 0 { Err("at least 1".into()) } else { Ok(count) }
}

/// Reads a number of flows.
///
/// # Errors
/// What a number of flows has to be.
pub fn flows(text: &str) -> Result<u32, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(count)
        .ok()
        .filter(|count| (1_000..=100_000_000).contains(count))
        .ok_or_else(|| "between 1k and 100M flows".into())
}
