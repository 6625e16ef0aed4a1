//! Changes that some instances can make in place, and this one cannot.

use rheostat_control::Config;
use rheostat_control::comparison::Difference;

use super::LiveRun;

/// Each of `changes`, from `config` to `next`, that a run cannot make, with the reason.
pub(super) fn of(
    config: &Config,
    next: &Config,
    changes: &[Difference],
    live: &LiveRun,
) -> Vec<String> {
    let mut obstacles = Vec::new();
    for (function, next) in config.chain.iter().zip(&next.chain) {
        for fixed in function.fixed(next) {
            let key = format!("function.{}.{}", function.name(), fixed.key);
            obstacles.push(format!("{}: {}", shown(&key, changes), fixed.reason));
        }
    }
    if config.balance.policy != next.balance.policy {
        if live.has_offloading_lanes()
            && config.balance.plans_offloading() != next.balance.plans_offloading()
        {
            let reason = "which flows leave their lanes is decided from the start";
            obstacles.push(format!("{}: {reason}", shown("balance.policy", changes)));
        }
        if !live.reports_shards() && !next.balance.is_static() {
            let reason = "this run does not measure the load of shards, as its first policy moves none and it has no control socket";
            obstacles.push(format!("{}: {reason}", shown("balance.policy", changes)));
        }
    }
    obstacles
}

/// The changes of a key and of the keys in it, in words.
fn shown(key: &str, changes: &[Difference]) -> String {
    let of_key = |change: &&Difference| {
        change
            .key
            .strip_prefix(key)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let texts: Vec<_> = changes.iter().filter(of_key).map(ToString::to_string).collect();
    if texts.is_empty() { key.to_owned() } else { texts.join("; ") }
}
