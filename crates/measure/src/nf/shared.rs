//! Functions on shared objects, as `rheo run` runs them.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::bridge::BridgeConfig;
use rheostat_functions::nat::{Mapping, SharedNat, Sharing};
use rheostat_functions::{AntiDdos, Bridge, Portscan, PortscanConfig};
use rheostat_nf::{DeviceSet, shared_link};
use rheostat_state::txn::Objects;

use super::measurement::Figure;
use super::runtime::{flows, nat_config, run};
use super::{NfBench, Spec};
use crate::error::MeasureError;

/// How long a flow of one packet, or a pair of hosts, is remembered. Shorter than by default, so that within a row as many
/// are forgotten as come.
const FORGOTTEN: Duration = Duration::from_millis(500);

/// Measures the detector of attacks with many flows, with the staleness that it has by default.
pub(super) fn measure_antiddos(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let config = AntiDdosConfig { one_packet: FORGOTTEN, ..AntiDdosConfig::default() };
    let objects = Objects::new(spec.lanes);
    run(spec, bench, shared_link(AntiDdos::new(config, &objects), &objects))
}

/// Measures the detector of port scans, with room for all pairs.
pub(super) fn measure_portscan(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let pairs = 2 * flows(spec) as usize;
    let config = PortscanConfig { pairs, retention: FORGOTTEN, ..PortscanConfig::default() };
    let objects = Objects::new(spec.lanes);
    run(spec, bench, shared_link(Portscan::new(config, &objects), &objects))
}

/// Measures the bridge, with room for all stations.
pub(super) fn measure_bridge(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let stations = 2 * flows(spec) as usize + 1_024;
    let config = BridgeConfig { stations, ..BridgeConfig::new(DeviceSet::first(2)) };
    let objects = Objects::new(spec.lanes);
    run(spec, bench, shared_link(Bridge::new(config, &objects), &objects))
}

/// Measures the NAT with mappings that all lanes share, with room for all flows.
pub(super) fn measure_nat(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let config = nat_config(spec, bench.effort.remembered, Mapping::EndpointIndependent);
    let sharing = Sharing { flows: 2 * flows(spec) as usize, ..Sharing::default() };
    let mut rng = SmallRng::seed_from_u64(spec.load.seed);
    let objects = Objects::new(spec.lanes);
    let nat = SharedNat::new(config, sharing, &objects, &mut rng).expect("no blocks to divide");
    run(spec, bench, shared_link(nat, &objects))
}
