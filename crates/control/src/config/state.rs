//! `[state]`: how much the run remembers.

use std::time::Duration;

use rheostat_state::FragmentConfig;

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::{count, duration, integer, power_of_two};

/// Sizes of flow tables and of what waits for reassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// Flows the whole run holds at most, spread over the shards.
    pub flows: u64,
    /// Shards: a power of two, at most as many as buckets.
    pub shards: usize,
    /// Limits of the virtual reassembly of fragments, in each shard.
    pub fragments: FragmentConfig,
}

impl Default for StateConfig {
    fn default() -> StateConfig {
        StateConfig { flows: 1_000_000, shards: 128, fragments: FragmentConfig::default() }
    }
}

impl StateConfig {
    /// Flows each shard holds at most: the run's share of each, rounded up.
    pub fn flows_per_shard(&self) -> u64 {
        self.flows.div_ceil(self.shards as u64)
    }

    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> StateConfig {
        let default = StateConfig::default();
        let flows = table.read("flows", findings, count(1..=1_000_000_000));
        let shards = table.read("shards", findings, |value, findings| {
            let shards = integer(1..=512)(value, findings)?;
            power_of_two(value, shards, findings)
        });
        let fragments = table.section("fragments", findings, fragments);
        StateConfig {
            flows: flows.unwrap_or(default.flows),
            shards: shards.map_or(default.shards, |shards| shards as usize),
            fragments: fragments.unwrap_or(default.fragments),
        }
    }
}

/// `[state.fragments]`: limits of the virtual reassembly, in each shard.
fn fragments(table: &mut Table<'_>, findings: &mut Findings) -> FragmentConfig {
    let default = FragmentConfig::default();
    let span = Duration::from_secs(1)..=Duration::from_secs(600);
    let mut number = |key, most, default: usize| {
        table.read(key, findings, count(1..=most)).map_or(default, |number| number as usize)
    };
    let datagrams = number("datagrams", 1_024, default.datagrams);
    let pieces = number("pieces", 8_192, default.pieces);
    let held = number("held", 65_536, default.held);
    let timeout_v4 = table.read("timeout_v4", findings, duration(span.clone()));
    let timeout_v6 = table.read("timeout_v6", findings, duration(span));
    FragmentConfig {
        datagrams,
        pieces,
        held,
        timeout_v4: timeout_v4.unwrap_or(default.timeout_v4),
        timeout_v6: timeout_v6.unwrap_or(default.timeout_v6),
    }
}
