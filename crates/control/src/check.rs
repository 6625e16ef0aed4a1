//! Contradictions between tables, each pointed at on both sides.

mod chain;
mod classes;
mod files;
mod host;
mod interfaces;
mod machine;
mod network;
mod offloading;
mod ports;
mod replies;
mod serving;
mod sharing;

use std::path::Path;

use rheostat_kernel::priority::Priority;
use rheostat_steer::Orientation;

use crate::config::{DeviceConfig, Sections};
use crate::machine::Machine;
use crate::registry::Registry;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes all contradictions between the tables of `config`, with its own file, if it is one, and with the machine. Those that
/// concern a table which could not be read in full are left for when it can.
pub(crate) fn across_tables(
    config: &Sections,
    file: Option<&Path>,
    machine: &dyn Machine,
    registry: &Registry,
    findings: &mut Findings,
) {
    if findings.clean("device") {
        repeated_names(&config.devices, findings);
        if config.devices.is_empty() || has_sides(config, findings) {
            sides(&config.devices, findings);
        } else {
            ports::check(config, findings);
        }
        files::check(config, file, machine, findings);
        interfaces::check(&config.devices, findings);
        replies::check(&config.devices, findings);
        if !host::is_host(config) {
            network::check(config, findings);
        }
        host::check(config, findings);
    }
    serving::check(config, findings);
    shards(config, findings);
    chain::check(config, findings);
    sharing::check(config, registry, findings);
    offloading::check(config, findings);
    classes::check(config, findings);
    priority(config, findings);
    config.chain.iter().for_each(|function| function.settings().check(findings));
    machine::check(config, machine, findings);
}

/// Whether devices stand inside or outside. A router and a bridge may have any number of devices, and know no sides; a service has
/// one device, where all its peers are.
fn has_sides(config: &Sections, findings: &Findings) -> bool {
    let is_service = config.serve.is_some() || !findings.clean("serve");
    !is_service && !config.chain.iter().any(|function| function.facts().without_sides)
}

fn repeated_names(devices: &[DeviceConfig], findings: &mut Findings) {
    for (index, device) in devices.iter().enumerate() {
        let earlier = devices[..index].iter().position(|other| other.name == device.name);
        let Some(earlier) = earlier else { continue };
        let key = format!("device[{index}].name");
        let message = format!("two devices are named `{}`", device.name);
        let finding = Finding::mistake(&key, message)
            .at(findings.place(&format!("device[{earlier}].name")), "first here")
            .at(findings.place(&key), "and again here")
            .help("give each device a name of its own");
        findings.push(finding);
    }
}

/// Either one device carries both directions, or one stands inside and one outside.
fn sides(devices: &[DeviceConfig], findings: &mut Findings) {
    let count = |wanted: &Orientation| devices.iter().filter(|d| d.orientation == *wanted).count();
    let (inside, outside) = (count(&Orientation::Inside), count(&Orientation::Outside));
    let both = devices.len() - inside - outside;
    let message = match (both, inside, outside) {
        (1, 0, 0) | (0, 1, 1) => return,
        (0, 0, 0) => {
            let message = "the file has no `[[device]]`, so no packet would arrive";
            let help = "add a `[[device]]` table with `name`, `kind` and `inside` (or `side`); \
                        configs/demo.toml is an example";
            findings.push(Finding::mistake("device", message).help(help));
            return;
        }
        (0, 1, 0) => "a device inside needs one outside, where its packets leave",
        (0, 0, 1) => "a device outside needs one inside, where its packets leave",
        (0, ..) => "more than one device is on the same side",
        _ => "a device for both sides leaves no place for another device",
    };
    let mut finding = Finding::mistake("device", message);
    for (index, device) in devices.iter().enumerate() {
        let (key, label) = match device.orientation {
            Orientation::Inside => ("side", "inside"),
            Orientation::Outside => ("side", "outside"),
            Orientation::ByPrefix(_) => ("inside", "both sides"),
        };
        let place = findings.place(&format!("device[{index}].{key}"));
        finding = finding.at(place, format!("`{}`: {label}", device.name));
    }
    findings.push(finding.help(
        "have one device with `side = \"inside\"` and one with `side = \"outside\"`, or one alone \
         with `inside = [prefixes]`",
    ));
}

/// Real-time threads that never sleep: the kernel stops them for a part of each second, so that other threads run.
fn priority(config: &Sections, findings: &mut Findings) {
    if !matches!(config.workers.priority, Some(Priority::Fifo(_)))
        || !config.polling.never_sleeps()
        || !findings.clean("polling")
    {
        return;
    }
    const KEY: &str = "workers.priority";
    let message =
        "workers under SCHED_FIFO that poll without sleep are stopped for 50 ms of each second";
    let finding = Finding::warning(KEY, message)
        .at(findings.place(KEY), "by the kernel (sysctl kernel.sched_rt_runtime_us)")
        .help("write `[polling] policy = \"metronome\"` or \"interrupt\", or `priority = \"nice:-20\"`");
    findings.push(finding);
}

fn shards(config: &Sections, findings: &mut Findings) {
    let (shards, buckets) = (config.state.shards, config.steering.buckets);
    if shards > buckets && findings.clean("state.shards") && findings.clean("steering.buckets") {
        let message = format!("{shards} shards do not fit {buckets} buckets");
        let finding = Finding::mistake("state.shards", message)
            .at(findings.place("state.shards"), format!("{shards} shards"))
            .at(findings.place("steering.buckets"), format!("{buckets} buckets"))
            .help(format!(
                "each bucket belongs to one shard: have at most {buckets} shards, or {shards} buckets"
            ));
        findings.push(finding);
    }
    let lanes = config.workers.lanes.map_or(0, usize::from);
    if lanes > shards && findings.clean("state.shards") && findings.clean("workers.lanes") {
        let message = format!("{lanes} lanes share {shards} shards: some lanes will have no work");
        let finding = Finding::warning("workers.lanes", message)
            .at(findings.place("workers.lanes"), format!("{lanes} lanes"))
            .at(findings.place("state.shards"), format!("{shards} shards"))
            .help(format!("have at most {shards} lanes, or more shards"));
        findings.push(finding);
    }
}
