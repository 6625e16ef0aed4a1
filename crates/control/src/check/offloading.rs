//! Whether single flows can leave their lanes for offloading lanes.

use crate::config::Sections;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

const KEY: &str = "workers.offloading";

/// Notes what keeps flows from leaving, where there are to be offloading lanes.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    let offloading = config.workers.offloading;
    if offloading.most == 0 || !findings.clean("workers") {
        return;
    }
    if let Some(lanes) = config.workers.lanes.filter(|lanes| offloading.least > lanes / 2) {
        let message = format!("{} of {lanes} lanes cannot be offloading lanes", offloading.least);
        let finding = Finding::mistake(KEY, message)
            .at(findings.place("workers.lanes"), format!("{lanes} lanes"))
            .at(findings.place(KEY), "no fewer of them")
            .help(format!("have {} lanes, or fewer offloading lanes", 2 * offloading.least));
        findings.push(finding);
    }
    if config.workers.queue_sharing > 1 {
        let message = "no flow leaves lanes that share a queue: they own its shards together";
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "offloading lanes")
            .at(findings.place("workers.queue_sharing"), "several lanes to each queue")
            .help("remove one of the two");
        findings.push(finding);
    }
    if findings.clean("chain") {
        chain(config, findings);
    }
    if findings.clean("device") {
        devices(config, findings);
    }
    balance(config, findings);
}

/// All functions can process packets of flows that are away: those that keep flows in shards.
fn chain(config: &Sections, findings: &mut Findings) {
    for function in config.chain.iter().filter(|function| !function.facts().owns_flows()) {
        let name = function.name();
        let message = format!("no flow can leave a lane whose chain has this `{name}`");
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "offloading lanes")
            .at(findings.place("chain.functions"), format!("has `{name}`"))
            .help(
                "remove `offloading`; flows can leave in chains of `firewall`, `nat` with `state = \"shards\"`, `lb`, `policer` and \
                 `monitor`",
            );
        findings.push(finding);
    }
}

/// On a network, packets wait in a lane until their next hop has a link address.
fn devices(config: &Sections, findings: &mut Findings) {
    let Some(index) = config.devices.iter().position(|device| !device.addresses.is_empty()) else {
        return;
    };
    let key = format!("device[{index}].address");
    let message =
        "no flow leaves a lane that routes packets: they may wait there for their next hop";
    let finding = Finding::mistake(KEY, message)
        .at(findings.place(KEY), "offloading lanes")
        .at(findings.place(&key), "this device has an address")
        .help("remove `offloading`, or have devices without `address`");
    findings.push(finding);
}

/// A policy that decides which lanes offload begins without any; others would give shards to offloading lanes.
fn balance(config: &Sections, findings: &mut Findings) {
    if config.balance.is_static() || !findings.clean("balance") {
        return;
    }
    let offloading = config.workers.offloading;
    if config.balance.plans_offloading() {
        if offloading.least > 0 {
            let message = "this policy decides how many lanes offload, and begins without any";
            let finding = Finding::mistake(KEY, message)
                .at(findings.place(KEY), "no fewer than the first number")
                .at(findings.place("balance.policy"), config.balance.policy.name)
                .help(format!("write `offloading = \"0-{}\"`", offloading.most));
            findings.push(finding);
        }
        return;
    }
    let message = "this policy knows no offloading lanes: it would give them shards";
    let finding = Finding::mistake(KEY, message)
        .at(findings.place(KEY), "offloading lanes")
        .at(findings.place("balance.policy"), config.balance.policy.name)
        .help("write `[balance] policy = \"dyssect\"` or \"auto\", which decide themselves, or \"rss\"");
    findings.push(finding);
}
