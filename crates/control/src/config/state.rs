//! `[state]`: how much the run remembers.

use std::time::Duration;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{count, duration, power_of_two};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_state::FragmentConfig;

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

rheostat_settings::keys! {
    struct Keys {
        /// Flows the whole run holds at most, spread over the shards.
        flows: u64 = count(1..=1_000_000_000), default(1_000_000);
        /// Parts of the state, of which each lane owns some; at most as many as `steering.buckets`.
        shards: usize = power_of_two(1..=512), default(128);
    }
}

const SPAN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

rheostat_settings::keys! {
    struct FragmentKeys(default: FragmentConfig) {
        /// Datagrams tracked at a time. Every fragment is compared with all of them.
        datagrams: usize = count(1..=1_024), default(default.datagrams);
        /// Fragments of one datagram, and packets held for it.
        pieces: usize = count(1..=8_192), default(default.pieces);
        /// Packets held at a time, for all datagrams together.
        held: usize = count(1..=65_536), default(default.held);
        /// How long a datagram of IPv4 may take.
        timeout_v4: Duration = duration(SPAN), default(default.timeout_v4);
        /// How long a datagram of IPv6 may take.
        timeout_v6: Duration = duration(SPAN), default(default.timeout_v6);
    }
}

impl Default for StateConfig {
    fn default() -> StateConfig {
        let mut findings = Findings::default();
        Table::read_absent("state", &mut findings, StateConfig::read)
    }
}

impl StateConfig {
    /// Flows each shard holds at most: the run's share of each, rounded up.
    pub fn flows_per_shard(&self) -> u64 {
        self.flows.div_ceil(self.shards as u64)
    }

    pub(crate) fn keys() -> Vec<Setting> {
        let help = "Limits of the virtual reassembly of fragments, in each shard.";
        let fragments = FragmentKeys::new(FragmentConfig::default()).settings();
        let mut keys = Keys::new().settings();
        keys.push(Setting::table("fragments", help, fragments));
        keys
    }

    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> StateConfig {
        let keys = Keys::new();
        let flows = keys.flows.read_or_default(table, findings);
        let shards = keys.shards.read_or_default(table, findings);
        let fragments = table.section("fragments", findings, fragments).unwrap_or_default();
        StateConfig { flows, shards, fragments }
    }
}

/// `[state.fragments]`: limits of the virtual reassembly, in each shard.
fn fragments(table: &mut Table<'_>, findings: &mut Findings) -> FragmentConfig {
    let keys = FragmentKeys::new(FragmentConfig::default());
    FragmentConfig {
        datagrams: keys.datagrams.read_or_default(table, findings),
        pieces: keys.pieces.read_or_default(table, findings),
        held: keys.held.read_or_default(table, findings),
        timeout_v4: keys.timeout_v4.read_or_default(table, findings),
        timeout_v6: keys.timeout_v6.read_or_default(table, findings),
    }
}
