//! What cannot be done where several lanes receive from one queue.

use crate::config::Sections;
use crate::registry::Registry;
use rheostat_io::Refusal;
use rheostat_nf::registry::Registration;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

const KEY: &str = "workers.queue_sharing";

/// Notes what keeps lanes from sharing queues.
pub(super) fn check(config: &Sections, registry: &Registry, findings: &mut Findings) {
    if config.workers.queue_sharing <= 1 || !findings.clean("workers") {
        return;
    }
    groups(config, findings);
    if findings.clean("chain") {
        chain(config, registry, findings);
    }
    if findings.clean("device") {
        devices(config, findings);
    }
    balance(config, findings);
}

/// As many lanes to each queue.
fn groups(config: &Sections, findings: &mut Findings) {
    let sharing = config.workers.queue_sharing;
    let Some(lanes) = config.workers.lanes.filter(|lanes| !lanes.is_multiple_of(sharing)) else {
        return;
    };
    let up = lanes.next_multiple_of(sharing);
    let message = format!("{lanes} lanes cannot share queues by {sharing}");
    let finding = Finding::mistake(KEY, message)
        .at(findings.place("workers.lanes"), format!("{lanes} lanes"))
        .at(findings.place(KEY), "so many to each queue")
        .help(format!("have {up} lanes, or leave `lanes` out"));
    findings.push(finding);
}

/// Functions that work on shared objects and keep state of flows in shards besides: a transaction is about packets of several
/// shards, and a lane that owns shards together with others has one at a time.
fn chain(config: &Sections, registry: &Registry, findings: &mut Findings) {
    // With others, each function on shared objects has a transaction of its own for each packet.
    if config.chain.len() > 1 {
        return;
    }
    for function in config.chain.iter().filter(|function| function.facts().spans_shards()) {
        let name = function.name();
        let message = format!(
            "lanes that share a queue take its shards one at a time, and a transaction of `{name}` is about flows of several \
             shards"
        );
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "several lanes to each queue")
            .at(findings.place("chain.functions"), format!("has `{name}`"))
            .help(format!(
                "remove `queue_sharing`, so that each lane has a queue of its own; all functions but {} can share queues",
                spanning_shards(registry)
            ));
        findings.push(finding);
    }
}

/// The functions that span shards by default, as a list for people.
fn spanning_shards(registry: &Registry) -> String {
    let spans = |function: &&Registration| {
        (function.default)(&[]).is_ok_and(|settings| settings.facts().spans_shards())
    };
    let names: Vec<_> = registry
        .functions
        .iter()
        .filter(spans)
        .map(|function| format!("`{}`", function.name))
        .collect();
    names.join(" and ")
}

fn devices(config: &Sections, findings: &mut Findings) {
    for (index, device) in config.devices.iter().enumerate() {
        let Some(Refusal { key, label, why, .. }) = device.facts().own_queues else { continue };
        let key = format!("device[{index}].{key}");
        let message = format!("lanes cannot share queues of device `{}`: {why}", device.name);
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "several lanes to each queue")
            .at(findings.place(&key), label)
            .help(
                "remove `queue_sharing`, or have devices of kind \"af_xdp\", \"pcap\" or \"sim\" without `replies`",
            );
        findings.push(finding);
    }
}

/// A shard's packets come to all lanes of a queue, which own it together.
fn balance(config: &Sections, findings: &mut Findings) {
    if config.balance.is_static() || !findings.clean("balance") {
        return;
    }
    let message = "lanes that share queues share their load: no policy moves shards between them";
    let finding = Finding::mistake(KEY, message)
        .at(findings.place(KEY), "several lanes to each queue")
        .at(findings.place("balance.policy"), config.balance.policy.name)
        .help("write `[balance] policy = \"rss\"`, or remove `queue_sharing`");
    findings.push(finding);
}
