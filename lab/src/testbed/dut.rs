//! The device under test, as RFC 2544 calls it: what lanes are made of where policies, moves and costs are
//! measured. One device; clients are in 10.0.0.0/8 and fd00::/8, as those of generated traffic are.

mod bounce;

use std::sync::Arc;

use rheostat_functions::firewall::{FirewallConfig, TcpOptions};
use rheostat_functions::{Firewall, shipped};
use rheostat_nf::{AnyChain, ChainError, link};
use rheostat_state::{ArenaError, FlowHasher, FragmentConfig, Shard, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering, SteeringError};

pub(crate) use bounce::Bounce;

/// How its packets are placed.
pub(crate) fn steering(buckets: usize, shards: usize) -> Result<Steering, SteeringError> {
    let inside = ["10.0.0.0/8", "fd00::/8"].iter().filter_map(|text| text.parse().ok()).collect();
    Steering::new(&HashKey::MICROSOFT, buckets, shards, vec![Orientation::ByPrefix(inside)])
}

/// The firewall, which lets everything from inside out and picks connections up midway.
pub(crate) fn firewall() -> Result<AnyChain, ChainError> {
    let tcp = TcpOptions { pickup: true, ..TcpOptions::default() };
    let config = FirewallConfig { tcp, ..FirewallConfig::default() };
    shipped::chain(vec![link(Firewall::new(config))])
}

/// Its shards, each with room for `capacity` flows.
pub(crate) fn shards(
    chain: &AnyChain,
    steering: &Arc<Steering>,
    capacity: usize,
    (hasher, seed): (FlowHasher, u64),
) -> Result<Vec<Box<Shard>>, ArenaError> {
    let (table, fragments) = (TableConfig { capacity, aliases: false }, FragmentConfig::default());
    chain.make_shards(steering, table, hasher, fragments, seed)
}
