//! A device of kind `host`: TCP is the kernel's, and settings of rheostat's own have no meaning.

use crate::config::{DeviceKind, Sections};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Keys that the file may have, each with the reason why it has no meaning.
const REFUSED: [(&str, &str); 19] = [
    ("serve.scheduler", "one thread does everything of a request"),
    ("serve.place", "threads run where the kernel has them run"),
    ("serve.beside_kernel", "the addresses are the kernel's anyway"),
    ("serve.half_open", "handshakes are the kernel's (net.ipv4.tcp_max_syn_backlog)"),
    ("serve.time_wait", "closed connections are the kernel's"),
    ("serve.syn_cookies", "handshakes are the kernel's (net.ipv4.tcp_syncookies)"),
    ("serve.handshake_timeout", "handshakes are the kernel's (net.ipv4.tcp_synack_retries)"),
    ("serve.shard_memory", "connections belong to no shard"),
    ("serve.congestion", "the kernel's TCP has its own (net.ipv4.tcp_congestion_control)"),
    ("serve.send_buffer", "buffers are the kernel's (net.ipv4.tcp_wmem)"),
    ("serve.receive_buffer", "buffers are the kernel's (net.ipv4.tcp_rmem)"),
    ("route", "routes are the kernel's"),
    ("neighbour", "neighbours are the kernel's"),
    ("network", "routes and neighbours are the kernel's"),
    ("steering", "the kernel spreads connections over lanes"),
    ("balance.policy", "connections stay on their lane"),
    ("polling", "a lane blocks in epoll"),
    ("pool", "packets are the kernel's"),
    ("state", "connections belong to no shard"),
];

/// Whether a device's TCP is the kernel's.
pub(super) fn is_host(config: &Sections) -> bool {
    config.devices.iter().any(|device| device.kind == DeviceKind::Host)
}

/// Notes a device of kind `host` without a service, and what such a service cannot have.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    let Some(index) = config.devices.iter().position(|device| device.kind == DeviceKind::Host)
    else {
        return;
    };
    let kind = format!("device[{index}].kind");
    if config.serve.is_none() && findings.clean("serve") {
        let message = "the kernel's sockets have connections, and no packets for a chain";
        let finding = Finding::mistake(&kind, message).at(findings.place(&kind), "");
        findings.push(finding.help("write kind = \"af_xdp\", \"af_packet\" or \"tap\""));
        return;
    }
    for (key, reason) in REFUSED {
        // A default states nothing.
        let Some(place) = findings.place(key) else { continue };
        let name = key.trim_start_matches("serve.");
        let message = format!("`{name}` has no meaning where the kernel does TCP: {reason}");
        let finding = Finding::mistake(key, message)
            .at(Some(place), "")
            .at(findings.place(&kind), "the device");
        let help = "remove it, or take a device of kind \"af_xdp\", \"af_packet\" or \"tap\"";
        findings.push(finding.help(help));
    }
    let own_flags = [
        ("--policy", findings.place("balance.policy").is_none() && !config.balance.is_static()),
        ("--polling", findings.is_flag("polling.policy")),
    ];
    for (flag, _) in own_flags.into_iter().filter(|(_, is_given)| *is_given) {
        let message = format!("{flag} has no meaning where the kernel does TCP");
        findings.push(Finding::mistake(flag, message).help("leave it out"));
    }
    if let Some(serve) = &config.serve
        && serve.application.facts().is_handler
    {
        let application = serve.application.name();
        let message =
            format!("a {application} has no requests, and is not run over the kernel's sockets");
        let finding = Finding::mistake("serve.service", message)
            .at(findings.place("serve.service"), "")
            .at(findings.place(&kind), "the device");
        findings.push(finding.help("write kind = \"af_xdp\", \"af_packet\" or \"tap\""));
    }
}
