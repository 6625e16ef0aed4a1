//! What cannot be done where several lanes receive from one queue.

use crate::config::device::live::Access;
use crate::config::{Config, DeviceKind, FunctionConfig};
use crate::diagnostic::Finding;
use crate::findings::Findings;

const KEY: &str = "workers.queue_sharing";

/// Notes what keeps lanes from sharing queues.
pub(super) fn check(config: &Config, findings: &mut Findings) {
    if config.workers.queue_sharing <= 1 || !findings.clean("workers") {
        return;
    }
    groups(config, findings);
    if findings.clean("chain") {
        chain(config, findings);
    }
    if findings.clean("device") {
        devices(config, findings);
    }
    balance(config, findings);
}

/// As many lanes to each queue.
fn groups(config: &Config, findings: &mut Findings) {
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

/// What a function keeps for each flow, in a shard that one lane owns; `None` for one whose packets any lane may process.
fn kept(function: &FunctionConfig) -> Option<&'static str> {
    match function {
        FunctionConfig::Router | FunctionConfig::Bridge(_) => None,
        FunctionConfig::Nat(nat) if nat.sharing.is_some() => None,
        FunctionConfig::Nat(_) => Some("mappings"),
        FunctionConfig::Firewall(_) => Some("connections"),
        FunctionConfig::Policer(_) => Some("buckets of tokens"),
        FunctionConfig::Lb(_) => Some("the backends of connections"),
        FunctionConfig::Monitor(_) => Some("flows"),
        FunctionConfig::AntiDdos(_) | FunctionConfig::Portscan(_) => Some("the state of flows"),
    }
}

fn chain(config: &Config, findings: &mut Findings) {
    for function in &config.chain {
        let Some(kept) = kept(function) else { continue };
        let name = function.name();
        let message = format!(
            "lanes that share a queue each get some packets of a flow, and `{name}` keeps {kept} in shards, each of \
             which one lane owns"
        );
        let nat = match function {
            FunctionConfig::Nat(_) => "write `state = \"shared\"` in `[function.nat]`, or ",
            _ => "",
        };
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "several lanes to each queue")
            .at(findings.place("chain.functions"), format!("has `{name}`"))
            .help(format!(
                "{nat}remove `queue_sharing`, so that each lane has a queue of its own; no function, `router`, `bridge` and \
                 `nat` with `state = \"shared\"` can share queues"
            ));
        findings.push(finding);
    }
}

fn devices(config: &Config, findings: &mut Findings) {
    for (index, device) in config.devices.iter().enumerate() {
        let DeviceKind::Live(live) = &device.kind else { continue };
        let why = match live.access {
            Access::AfXdp { .. } => continue,
            Access::AfPacket { .. } => "the kernel gives each lane a ring of its own",
            Access::Tap => "the kernel gives each lane a queue of its own",
        };
        let key = format!("device[{index}].kind");
        let message = format!("lanes cannot share queues of device `{}`: {why}", device.name);
        let finding = Finding::mistake(KEY, message)
            .at(findings.place(KEY), "several lanes to each queue")
            .at(findings.place(&key), live.word())
            .help(
                "remove `queue_sharing`, or have devices of kind \"af_xdp\", \"sim\" or \"pcap\"",
            );
        findings.push(finding);
    }
}

/// A shard's packets come to all lanes of a queue, whichever owns it.
fn balance(config: &Config, findings: &mut Findings) {
    if config.balance.is_static() || !findings.clean("balance") {
        return;
    }
    let message = "lanes that share queues share their load: no policy moves shards between them";
    let finding = Finding::mistake(KEY, message)
        .at(findings.place(KEY), "several lanes to each queue")
        .at(findings.place("balance.policy"), config.balance.policy)
        .help("write `[balance] policy = \"rss\"`, or remove `queue_sharing`");
    findings.push(finding);
}
