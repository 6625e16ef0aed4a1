//! Settings of functions that cannot change while they run.

use rheostat_nf::registry::FixedKey;

/// Why the size of something that lanes share stays.
pub(crate) const SIZED: &str = "objects that all lanes share keep their size";

/// Of these keys, each with whether it is to change and why it cannot, those that are to change.
pub(crate) fn fixed_keys<const N: usize>(
    keys: [(&'static str, bool, &'static str); N],
) -> Vec<FixedKey> {
    let changed = keys.into_iter().filter(|(_, changed, _)| *changed);
    changed.map(|(key, _, reason)| FixedKey { key, reason }).collect()
}
