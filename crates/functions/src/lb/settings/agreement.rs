//! Contradictions between the parts of a load balancer's settings, and with the devices.

use crate::lb::maglev::next_prime;
use crate::lb::{Health, LbConfig, Mode, ServiceConfig};
use rheostat_steer::Orientation;

use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// Slots per backend: with a hundred, shares differ by 1 % at most (the paper, section 5.3).
const SLOTS_PER_BACKEND: usize = 100;

/// Notes what does not go together.
pub(super) fn check(
    config: &LbConfig,
    table: &Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) {
    let mut found = Vec::new();
    if config.services.is_empty() {
        let finding = table.mistake("the load balancer has no service", "this function");
        found.push(finding.help("add a `[[function.lb.service]]`"));
    }
    for (index, service) in config.services.iter().enumerate() {
        let key = |key: &str| format!("{}.service[{index}].{key}", table.key());
        found.extend(size(config, service, table, findings));
        found.extend(overlap(config, index, table, findings));
        found.extend(inside(service, devices, findings, &key));
        found.extend(source(config, service, table, findings, &key));
        if service.backends.iter().all(|backend| backend.health != Health::Up) {
            let message = format!("no backend of service `{}` takes new flows", service.name);
            let finding = Finding::warning(key("backend"), message);
            let place = findings.place(&key("name"));
            found.push(
                finding.at(place, "").help("have one backend at least with `health = \"up\"`"),
            );
        }
    }
    found.into_iter().for_each(|finding| findings.push(finding));
}

fn size(
    config: &LbConfig,
    service: &ServiceConfig,
    table: &Table<'_>,
    findings: &Findings,
) -> Option<Finding> {
    let backends = service.backends.len();
    let least = backends * SLOTS_PER_BACKEND;
    if config.table_size >= least {
        return None;
    }
    let (name, size) = (&service.name, config.table_size);
    let message =
        format!("{size} slots are too few for the {backends} backends of service `{name}`");
    let key = table.key_of("table_size");
    let help = format!("write {}, for a hundred slots each", next_prime(least));
    Some(Finding::mistake(&key, message).at(findings.place(&key), "").help(help))
}

/// Two services at one address, protocol and port.
fn overlap(
    config: &LbConfig,
    index: usize,
    table: &Table<'_>,
    findings: &Findings,
) -> Option<Finding> {
    let service = &config.services[index];
    let meet = |other: &ServiceConfig| {
        let ranges = |service: &ServiceConfig| match service.ports.is_empty() {
            true => vec![(0, u16::MAX)],
            false => service.ports.iter().map(|range| (range.low, range.high)).collect(),
        };
        let others = ranges(other);
        (other.vip, other.protocol) == (service.vip, service.protocol)
            && ranges(service).iter().any(|a| others.iter().any(|b| a.0 <= b.1 && b.0 <= a.1))
    };
    let earlier = config.services[..index].iter().position(meet)?;
    let (first, name) = (&config.services[earlier].name, &service.name);
    let key = |index: usize| format!("{}.service[{index}].vip", table.key());
    let message = format!("services `{first}` and `{name}` share an address and a port");
    let finding = Finding::mistake(key(index), message)
        .at(findings.place(&key(earlier)), format!("`{first}`"))
        .at(findings.place(&key(index)), format!("`{name}`"));
    Some(finding.help("give each service ports of its own, with `port`"))
}

/// A service that is not inside, by the addresses of a device that carries both directions.
fn inside(
    service: &ServiceConfig,
    devices: &[Device],
    findings: &Findings,
    key: &impl Fn(&str) -> String,
) -> Option<Finding> {
    let both = devices.iter().enumerate().find_map(|(index, device)| match &device.orientation {
        Orientation::ByPrefix(inside) => Some((index, inside)),
        Orientation::Inside | Orientation::Outside => None,
    });
    let (index, inside) = both?;
    let strangers = service.backends.iter().map(|backend| backend.address);
    let strangers = strangers.filter(|_| service.mode == Mode::Nat);
    let stranger = std::iter::once(service.vip).chain(strangers).find(|a| !inside.contains(*a))?;
    let name = &service.name;
    let message = format!("{stranger}, of service `{name}`, is not inside");
    let finding = Finding::mistake(key("vip"), message)
        .at(findings.place(&format!("device[{index}].inside")), "what is inside")
        .at(findings.place(&key("vip")), "the service");
    Some(
        finding
            .help(format!("clients are outside, services and backends inside: add \"{stranger}\"")),
    )
}

/// A tunnel without a source address.
fn source(
    config: &LbConfig,
    service: &ServiceConfig,
    table: &Table<'_>,
    findings: &Findings,
    key: &impl Fn(&str) -> String,
) -> Option<Finding> {
    let is_v4 = service.vip.is_ipv4();
    let has_source = config.tunnel.sources.iter().any(|source| source.address().is_ipv4() == is_v4);
    if service.mode == Mode::Nat || has_source {
        return None;
    }
    let (family, example) = if is_v4 { ("IPv4", "172.16.0.0/16") } else { ("IPv6", "fd00:7::/64") };
    let message = format!("tunnels have no source address of {family}");
    let finding = Finding::mistake(table.key_of("tunnel.sources"), message)
        .at(findings.place(&table.key_of("tunnel")), "")
        .at(findings.place(&key("mode")), "a service with a tunnel");
    Some(finding.help(format!("add `sources = [\"{example}\"]` to `[function.lb.tunnel]`")))
}
