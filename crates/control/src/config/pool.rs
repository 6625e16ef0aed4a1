//! `[pool]`: the buffers that hold packets.

use rheostat_settings::declared::kind::count;

rheostat_settings::settings! {
    /// The one pool of packet buffers.
    #[derive(Eq)]
    pub struct PoolConfig: Default {
        /// How many buffers, for all devices and lanes together.
        buffers: u32 = count(1_024..=16_000_000), default(16_384);
    }
}
