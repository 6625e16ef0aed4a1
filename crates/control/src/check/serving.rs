//! What a service over TCP needs beside its table, and what it cannot have.

use rheostat_capture::Endpoints;
use rheostat_io::Refusal;

use crate::config::{DeviceConfig, DeviceKind, Sections, ServeConfig};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::suggestion::one_of;

/// Notes a service beside a chain, with another device than an interface with an address, and with what only chains have.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    let Some(serve) = &config.serve else { return };
    if !config.chain.is_empty() {
        let finding = Finding::mistake("chain.functions", "a service has no chain")
            .at(findings.place("chain.functions"), "these functions")
            .at(findings.place("serve"), "the service");
        findings.push(finding.help("remove `[chain]` and `[function]`, or `[serve]`"));
    }
    if findings.clean("device") {
        device(config, findings);
        beside_kernel(config, findings);
    }
    source_ports(config, serve, findings);
    memory(serve, findings);
    workers(config, findings);
    policy(config, findings);
    scheduler(config, serve, findings);
}

fn device(config: &Sections, findings: &mut Findings) {
    let serve = findings.place("serve");
    let [device] = config.devices.as_slice() else {
        let message =
            format!("a service has one device, and the file has {}", config.devices.len());
        let finding = Finding::mistake("device", message).at(serve, "the service");
        findings.push(finding.help("keep the `[[device]]` at whose addresses it is reached"));
        return;
    };
    if !device.facts().is_live && device.kind != DeviceKind::Host {
        let finding = Finding::mistake("device[0].kind", "a service needs an interface")
            .at(findings.place("device[0].kind"), "this is none")
            .at(serve.clone(), "the service");
        let help = "write kind = \"af_xdp\", \"af_packet\" or \"tap\"";
        findings.push(finding.help(help));
    }
    if device.addresses.is_empty() {
        let message = format!("a service needs an address, and device `{}` has none", device.name);
        let finding = Finding::mistake("device[0].address", message)
            .at(findings.place("device[0].name"), "the device")
            .at(serve, "the service");
        findings.push(finding.help("add `address = \"192.168.77.1/24\"` to its `[[device]]`"));
    }
}

/// What a service at the kernel's own addresses cannot have.
fn beside_kernel(config: &Sections, findings: &mut Findings) {
    let (Some(serve), [device]) = (&config.serve, config.devices.as_slice()) else { return };
    if !serve.beside_kernel {
        return;
    }
    let wrong = why_not_beside(device, serve);
    for (key, message, help) in wrong {
        let finding = Finding::mistake(key, message)
            .at(findings.place(key), "")
            .at(findings.place("serve.beside_kernel"), "the service is beside the kernel");
        findings.push(finding.help(help));
    }
}

/// Keys, what is wrong with them, and what would be right.
fn why_not_beside(
    device: &DeviceConfig,
    serve: &ServeConfig,
) -> Vec<(&'static str, String, &'static str)> {
    let mut wrong = Vec::new();
    match device.facts().not_beside_kernel {
        Some(Refusal { key: "exclusive", why, help, .. }) => {
            wrong.push(("device[0].exclusive", why.to_owned(), help));
        }
        Some(Refusal { why, help, .. }) => wrong.push(("device[0].kind", why.to_owned(), help)),
        None => {}
    }
    if let DeviceKind::Live(live) = &device.kind
        && !live.filter.take.is_empty()
    {
        wrong.push((
            "device[0].take",
            "a service beside the kernel takes what concerns it, and nothing else".to_owned(),
            "remove it",
        ));
    }
    if device.addresses.len() > Endpoints::MOST {
        wrong.push((
            "device[0].address",
            format!("{} addresses are more than {}", device.addresses.len(), Endpoints::MOST),
            "list those at which the service is reached",
        ));
    }
    let facts = serve.application.facts();
    if facts.opens.is_some_and(|opens| opens.source_ports.is_none()) {
        wrong.push((
            "serve.source_ports",
            format!("a {} beside the kernel needs ports of its own to connect from", serve.application.name()),
            "add `source_ports = \"20000-29999\"`: ports outside of net.ipv4.ip_local_port_range, or in \
             net.ipv4.ip_local_reserved_ports",
        ));
    }
    wrong
}

/// Ports of which some shards would have none: the connections of a shard come from ports that lead answers to it.
fn source_ports(config: &Sections, serve: &ServeConfig, findings: &mut Findings) {
    let opens = serve.application.facts().opens;
    let Some(ports) = opens.and_then(|opens| opens.source_ports) else { return };
    let (count, shards) = (ports.len(), config.state.shards);
    if count >= 2 * shards {
        return;
    }
    let message = format!(
        "{count} ports to connect from are fewer than two for each of the {shards} shards, which share them out"
    );
    let finding = Finding::mistake("serve.source_ports", message)
        .at(findings.place("serve.source_ports"), "these ports");
    let fewer = match count / 2 {
        0 => String::new(),
        most => format!(", or write `shards = {}` in `[state]`", 1 << most.ilog2()),
    };
    findings.push(finding.help(format!("give at least {} ports{fewer}", 2 * shards)));
}

/// A bound that another one never lets be reached.
fn memory(serve: &ServeConfig, findings: &mut Findings) {
    let of_shard = |key, bound| (key, bound, "shard_memory", serve.shard_memory);
    let own = serve.application.facts().in_shard_memory;
    let smaller = [
        ("shard_memory", serve.shard_memory, "connection_memory", serve.connection_memory),
        ("half_open", serve.half_open, "connections", serve.connections),
        of_shard("reply_memory", serve.reply_memory),
        of_shard("send_buffer", serve.send_buffer),
        of_shard("receive_buffer", serve.receive_buffer),
    ];
    let own = own.map(|(key, bound)| of_shard(key, bound));
    for (part, part_bound, whole, whole_bound) in smaller.into_iter().chain(own) {
        let key = |name: &str| format!("serve.{name}");
        let (part_place, whole_place) = (findings.place(&key(part)), findings.place(&key(whole)));
        // Defaults are not contradictions.
        if part_bound <= whole_bound || part_place.is_none() {
            continue;
        }
        let message = format!("`{part}` is more than `{whole}`");
        let finding = Finding::mistake(key(part), message)
            .at(part_place, format!("{part_bound}"))
            .at(whole_place, format!("{whole_bound}"));
        let help = format!("lower `{part}` to {whole_bound}, or raise `{whole}`");
        findings.push(finding.help(help));
    }
}

fn workers(config: &Sections, findings: &mut Findings) {
    let workers = &config.workers;
    let refused = [
        (
            "workers.queue_sharing",
            workers.queue_sharing > 1,
            "lanes of a service have a queue each",
        ),
        (
            "workers.offloading",
            workers.offloading != Default::default(),
            "connections of a service are not offloaded",
        ),
    ];
    for (key, is_set, message) in refused {
        if is_set {
            let finding = Finding::mistake(key, message)
                .at(findings.place(key), "")
                .at(findings.place("serve"), "the service");
            findings.push(finding.help("remove it"));
        }
    }
}

fn policy(config: &Sections, findings: &mut Findings) {
    let policy = config.balance.policy;
    if policy.facts.serves {
        return;
    }
    // A flag has no place in the file.
    let place = findings.place("balance.policy");
    let key = if place.is_some() { "balance.policy" } else { "--policy" };
    let message = format!("policy `{}` is for chains", policy.name);
    let finding =
        Finding::mistake(key, message).at(place, "").at(findings.place("serve"), "the service");
    let serving = config.balance.policies.iter().filter(|policy| policy.facts.serves);
    findings.push(finding.help(format!("write {}", one_of(serving.map(|policy| policy.name)))));
}

/// What an application cannot be scheduled by, and what a scheduler under which lanes share connections does not go with.
fn scheduler(config: &Sections, serve: &ServeConfig, findings: &mut Findings) {
    let (name, policy) = (&serve.scheduling.scheduler, config.balance.policy);
    let (application, facts) = (serve.application.name(), serve.application.facts());
    let place = findings.place("serve.scheduler");
    if facts.is_handler && name.plan().members().is_some() {
        let message =
            format!("a {application} has no requests that members of `{name}` could handle");
        let finding = Finding::mistake("serve.scheduler", message).at(place, "");
        findings.push(finding.help("write \"inline-dfcfs\""));
        return;
    }
    if name.sharing().is_none() {
        return;
    }
    if facts.opens.is_some() {
        let message = format!("a {application} opens connections, and does not run with `{name}`");
        let finding = Finding::mistake("serve.scheduler", message).at(place.clone(), "");
        findings.push(finding.help("write `scheduler = \"inline-dfcfs\"`, or remove it"));
    }
    if policy.facts.serves && !config.balance.is_static() {
        let message =
            format!("policy `{}` moves shards, and `{name}` has all lanes share them", policy.name);
        let moving = findings.place("balance.policy");
        let key = if moving.is_some() { "balance.policy" } else { "--policy" };
        let finding = Finding::mistake(key, message).at(moving, "").at(place, "the scheduler");
        let own = name.with_own_queues();
        let help = format!("write `policy = \"rss\"`, or `scheduler = \"{own}\"`");
        findings.push(finding.help(help));
    }
}
