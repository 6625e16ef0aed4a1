//! `[device.traffic]`: what a simulated NIC receives.

use rheostat_traffic::MixConfig;

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::boolean;
use rheostat_settings::reader::convert::number::{count, integer, number};

/// The generated mix of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficConfig {
    /// Flows under way at any time.
    pub flows: u32,
    /// Seeds the generator; from the seed of the run if absent.
    pub seed: Option<u64>,
    /// The share of flows that are IPv6.
    pub ipv6_share: f64,
    /// The exponent of the Zipf tail of flow sizes: the smaller, the more a few flows dominate.
    pub zipf: f64,
    /// The longest flow, in packets.
    pub longest: u32,
    /// After how many packets the traffic ends; never if absent.
    pub packets: Option<u64>,
    /// Whether only clients send, for servers that answer: see [`super::SimConfig::replies`].
    pub clients_only: bool,
    /// With a number: how many stations send, of which those behind this device, as one port of a bridge, count.
    pub stations: Option<u32>,
}

impl Default for TrafficConfig {
    fn default() -> TrafficConfig {
        let MixConfig { flows, ipv6_share, zipf, longest, .. } = MixConfig::default();
        TrafficConfig {
            flows,
            seed: None,
            ipv6_share,
            zipf,
            longest,
            packets: None,
            clients_only: false,
            stations: None,
        }
    }
}

impl TrafficConfig {
    pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> TrafficConfig {
        let default = TrafficConfig::default();
        let flows = table.read("flows", findings, count(1..=10_000_000));
        let seed = table.read("seed", findings, integer(0..=i64::MAX as u64));
        let ipv6_share = table.read("ipv6_share", findings, number(0.0..=1.0));
        let zipf = table.read("zipf", findings, number(0.01..=10.0));
        let longest = table.read("longest", findings, count(31..=4_000_000_000));
        let packets = table.read("packets", findings, count(1..=u64::MAX));
        let clients_only = table.read("clients_only", findings, boolean);
        let stations = table.read("stations", findings, count(2..=u64::from(u32::MAX)));
        TrafficConfig {
            flows: flows.map_or(default.flows, |flows| flows as u32),
            seed,
            ipv6_share: ipv6_share.unwrap_or(default.ipv6_share),
            zipf: zipf.unwrap_or(default.zipf),
            longest: longest.map_or(default.longest, |longest| longest as u32),
            packets,
            clients_only: clients_only.unwrap_or(default.clients_only),
            stations: stations.map(|stations| stations as u32),
        }
    }
}
