//! Chains on shared objects: whatever a transaction did is undone when it conflicts, nothing is done twice,
//! nothing is lost, and a packet that always conflicts gets through in the end.

mod alone;
mod disturbed;
mod erratic;
mod panics;
mod prefetch;
mod threads;
mod traced;
mod undone;

use rheostat::harness::HarnessReport;
use rheostat::{Harness, Mix, MixConfig, NetworkFunction, Objects, Stage, StateLayout};

/// What comes of so many flows and packets, with this function on shared objects and one lane.
fn on_one_lane<F>(function: F, objects: &Objects, flows: u32, packets: u64) -> HarnessReport
where
    F: NetworkFunction<Shard = ()>,
    F::Flow: Clone,
{
    let mut layout = StateLayout::new();
    let chain = Stage::on_objects(function, objects, &mut layout).unwrap();
    let mix = MixConfig { flows, packets: Some(packets), ..MixConfig::default() };
    let harness = Harness { lanes: 1, ..Harness::new(chain, layout) };
    let report = harness.run(Mix::new(mix).unwrap(), |_, ()| {}).unwrap();
    assert_eq!(report.violations, []);
    report
}
