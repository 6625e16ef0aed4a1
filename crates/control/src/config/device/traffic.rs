//! `[device.traffic]`: what a simulated NIC receives.

use rheostat_settings::declared::kind::{boolean, count, decimal, integer, optional};
use rheostat_traffic::MixConfig;

rheostat_settings::settings! {
    /// The generated mix of flows.
    pub struct TrafficConfig: Default {
        /// Flows under way at any time.
        flows: u32 = count(1..=10_000_000), default(MixConfig::default().flows);
        /// Seeds the generator; from the seed of the run if absent.
        seed: Option<u64> = optional(integer(0..=i64::MAX as u64)), example("1");
        /// The share of flows that are IPv6.
        ipv6_share: f64 = decimal(0.0..=1.0), default(MixConfig::default().ipv6_share);
        /// The exponent of the Zipf tail of flow sizes: the smaller, the more a few flows dominate.
        zipf: f64 = decimal(0.01..=10.0), default(MixConfig::default().zipf);
        /// The longest flow, in packets.
        longest: u32 = count(31..=4_000_000_000), default(MixConfig::default().longest);
        /// After how many packets the traffic ends; never if absent.
        packets: Option<u64> = optional(count(1..=u64::MAX)), example("\"1M\"");
        /// Whether only clients send, for servers that answer, as with `replies`.
        clients_only: bool = boolean(), default(false);
        /// With a number: how many stations send, of which those behind this device, as one port of a bridge, count.
        stations: Option<u32> = optional(count(2..=u64::from(u32::MAX)));
    }
}
