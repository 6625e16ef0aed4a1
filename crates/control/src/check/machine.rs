//! What a configuration needs and the machine does not have.

use std::net::SocketAddr;

use super::host;
use crate::config::Sections;
use crate::machine::{CoreState, Machine, NoListener};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes interfaces and cores that the machine has not, and ports at which nothing can listen.
pub(super) fn check(config: &Sections, machine: &dyn Machine, findings: &mut Findings) {
    if findings.clean("device") {
        interfaces(config, machine, findings);
        listeners(config, machine, findings);
    }
    if findings.clean("workers.cores") {
        cores(config, machine, findings);
    }
}

fn interfaces(config: &Sections, machine: &dyn Machine, findings: &mut Findings) {
    for (index, device) in config.devices.iter().enumerate() {
        let facts = device.facts();
        let Some(interface) = &facts.interface else { continue };
        if facts.makes_interface || machine.has_interface(interface) != Some(false) {
            continue;
        }
        let key = format!("device[{index}].interface");
        let message = format!("there is no interface `{interface}` for device `{}`", device.name);
        let finding =
            Finding::mistake(&key, message).at(findings.place(&key), "not on this machine");
        findings.push(finding.help(
            "`ip -brief link` lists the interfaces there are; `rheo check --offline` checks a configuration for \
             another machine",
        ));
    }
}

/// Notes the first place at which a service over the kernel's sockets cannot listen.
fn listeners(config: &Sections, machine: &dyn Machine, findings: &mut Findings) {
    let (true, Some(serve), [device]) = (host::is_host(config), &config.serve, &config.devices[..])
    else {
        return;
    };
    let at =
        |&port: &u16| device.addresses.iter().map(move |own| SocketAddr::new(own.address, port));
    let Some(NoListener { is_address, reason }) =
        serve.ports.iter().flat_map(at).find_map(|at| machine.why_not_listen(at))
    else {
        return;
    };
    let key = if is_address { "device[0].address" } else { "serve.port" };
    let finding = Finding::mistake(key, reason).at(findings.place(key), "nothing can listen here");
    findings
        .push(finding.help("`rheo check --offline` checks a configuration for another machine"));
}

fn cores(config: &Sections, machine: &dyn Machine, findings: &mut Findings) {
    let Some(list) = &config.workers.cores else { return };
    let named = |wanted: CoreState| {
        let cores = list.cores().iter().filter(|core| machine.core(**core) == Some(wanted));
        cores.map(|core| core.0.to_string()).collect::<Vec<_>>()
    };
    const KEY: &str = "workers.cores";
    for (state, what) in [
        (CoreState::Absent, "this machine has no"),
        (CoreState::Masked, "this process may not use"),
    ] {
        let cores = named(state);
        if cores.is_empty() {
            continue;
        }
        let plural = if cores.len() == 1 { "core" } else { "cores" };
        let message = format!("{what} {plural} {}", cores.join(","));
        let finding = Finding::mistake(KEY, message).at(findings.place(KEY), "");
        findings.push(finding.help(format!(
            "workers can be pinned to {}; `rheo check --offline` checks a configuration for another machine",
            machine.usable_cores()
        )));
    }
}
