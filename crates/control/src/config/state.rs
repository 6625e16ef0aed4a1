//! `[state]`: how much the run remembers.

use std::time::Duration;

use crate::findings::Findings;
use crate::reader::Table;
use crate::reader::convert::number::{count, duration, integer, power_of_two};

/// Sizes of flow tables and of what waits for reassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// Flows the whole run holds at most, spread over the shards.
    pub flows: u64,
    /// Shards: a power of two, at most as many as buckets.
    pub shards: usize,
    /// Limits of the reassembly of fragments.
    pub fragments: FragmentsConfig,
}

/// `[state.fragments]`: limits of the virtual reassembly, in each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentsConfig {
    /// Datagrams under reassembly at a time.
    pub datagrams: usize,
    /// Fragments one datagram may have.
    pub pieces: usize,
    /// Fragments held at a time until their flow is known, for all datagrams together.
    pub held: usize,
    /// How long a datagram of IPv4 may take.
    pub timeout_v4: Duration,
    /// How long a datagram of IPv6 may take.
    pub timeout_v6: Duration,
}

impl Default for StateConfig {
    fn default() -> StateConfig {
        StateConfig { flows: 1_000_000, shards: 128, fragments: FragmentsConfig::default() }
    }
}

impl Default for FragmentsConfig {
    fn default() -> FragmentsConfig {
        FragmentsConfig {
            datagrams: 64,
            pieces: 64,
            held: 64,
            timeout_v4: Duration::from_secs(30),
            timeout_v6: Duration::from_secs(60),
        }
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
        let fragments = table.section("fragments", findings, FragmentsConfig::read);
        StateConfig {
            flows: flows.unwrap_or(default.flows),
            shards: shards.map_or(default.shards, |shards| shards as usize),
            fragments: fragments.unwrap_or(default.fragments),
        }
    }
}

impl FragmentsConfig {
    fn read(table: &mut Table<'_>, findings: &mut Findings) -> FragmentsConfig {
        let default = FragmentsConfig::default();
        let span = Duration::from_secs(1)..=Duration::from_secs(600);
        let mut number = |key, most, default: usize| {
            table.read(key, findings, count(1..=most)).map_or(default, |number| number as usize)
        };
        let datagrams = number("datagrams", 1_024, default.datagrams);
        let pieces = number("pieces", 8_192, default.pieces);
        let held = number("held", 65_536, default.held);
        let timeout_v4 = table.read("timeout_v4", findings, duration(span.clone()));
        let timeout_v6 = table.read("timeout_v6", findings, duration(span));
        FragmentsConfig {
            datagrams,
            pieces,
            held,
            timeout_v4: timeout_v4.unwrap_or(default.timeout_v4),
            timeout_v6: timeout_v6.unwrap_or(default.timeout_v6),
        }
    }
}
