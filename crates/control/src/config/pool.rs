//! `[pool]`: the buffers that hold packets.

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::count;

/// The one pool of packet buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// How many buffers, for all devices and lanes together.
    pub buffers: u32,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig { buffers: 16_384 }
    }
}

impl PoolConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PoolConfig {
        let buffers = table.read("buffers", findings, count(1_024..=16_000_000));
        buffers.map_or_else(PoolConfig::default, |n| PoolConfig { buffers: n as u32 })
    }
}
