//! Places for workers: threads of a core, nodes of memory.

use rheostat_base::CoreId;
use rheostat_kernel::Topology;
use rheostat_kernel::placement::Placement;

use super::{Finding, Machine};

/// States cores, threads, nodes and the last-level cache, and which placements of `rheo serve --place` there are.
pub(super) fn examine(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let topology = Topology::read(|path| machine.read(path));
    if topology.processors().is_empty() {
        return;
    }
    let (cores, nodes) = (topology.cores(), topology.nodes());
    let threads = cores.iter().map(Vec::len).max().unwrap_or(1);
    let cache = match topology.last_level_cache() {
        Some(bytes) => format!("last-level cache of {:.1} MiB", bytes as f64 / 1_048_576.0),
        None => "last-level cache of unknown size".to_owned(),
    };
    let found = format!(
        "{} cores of {threads} threads, {} nodes of memory, {cache}",
        cores.len(),
        nodes.len()
    );
    findings.push(Finding::ok("cores", found));
    let usable: Vec<CoreId> = topology.processors().iter().map(|thread| thread.id).collect();
    // As for a device next to the first node.
    let node = nodes.first().copied();
    let (possible, not): (Vec<_>, Vec<_>) = Placement::all()
        .partition(|placement| placement.resolve(&topology, &usable, node, None).is_ok());
    let list = |placements: Vec<Placement>| {
        placements.iter().map(Placement::to_string).collect::<Vec<_>>().join(" ")
    };
    let mut found = list(possible);
    if threads < 2 {
        found += "; each core has one thread, so effects of sharing a core do not arise here";
    }
    if nodes.len() < 2 {
        found += "; there is one node of memory, so effects of far memory do not arise here";
    }
    if !not.is_empty() {
        found += &format!("; not possible: {}", list(not));
    }
    findings.push(Finding::ok("placements", found));
}
