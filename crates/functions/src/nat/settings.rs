//! `[function.nat]`: which addresses are translated, and to what.

pub(super) mod describe;
mod forward;
mod pool;
mod sharing;
mod timeouts;

use std::path::PathBuf;
use std::time::Duration;

use crate::nat::{Filtering, Mapping, NatConfig, Pool, Pooling, Sharing};
use rheostat_steer::{Orientation, Prefix, PrefixList};

use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::ethertype::ethertype;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::convert::number::{count, duration, packet_rate};
use rheostat_settings::reader::convert::{boolean, choice, list, path, prefix};
use rheostat_settings::reader::{Table, Value};

const MAPPINGS: [(&str, Mapping); 2] = [
    ("endpoint-independent", Mapping::EndpointIndependent),
    ("address-and-port-dependent", Mapping::AddressAndPortDependent),
];

const FILTERINGS: [(&str, Filtering); 3] = [
    ("endpoint-independent", Filtering::EndpointIndependent),
    ("address-dependent", Filtering::AddressDependent),
    ("address-and-port-dependent", Filtering::AddressAndPortDependent),
];

const POOLINGS: [(&str, Pooling); 2] =
    [("paired", Pooling::Paired), ("arbitrary", Pooling::Arbitrary)];

/// What to write where external addresses are missing.
pub(super) const EXAMPLE: &str = "[function.nat]\nexternal = [\"203.0.113.1\"]";

/// The NAT of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct NatFunction {
    /// Its settings.
    pub nat: NatConfig,
    /// The file that mappings are logged to.
    pub log: Option<PathBuf>,
    /// Where mappings are in objects that all lanes share: how large those are.
    pub sharing: Option<Sharing>,
}

/// Reads the settings of the NAT. With one device for both sides, the addresses that device has inside
/// are translated unless the file names others.
pub(super) fn read(
    table: &mut Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) -> Option<NatFunction> {
    let example = "external = [\"203.0.113.1\"]";
    let external = table.require("external", example, findings, pool::addresses);
    let mut nat = NatConfig::new(external.clone().unwrap_or_default());
    set(&mut nat.ports, table.read("ports", findings, pool::ports));
    set(&mut nat.mapping, table.read("mapping", findings, choice(&MAPPINGS)));
    let filtering = table.read("filtering", findings, choice(&FILTERINGS));
    if nat.mapping == Mapping::AddressAndPortDependent {
        nat.filtering = Filtering::AddressAndPortDependent;
    }
    set(&mut nat.filtering, filtering);
    set(&mut nat.pooling, table.read("pooling", findings, choice(&POOLINGS)));
    nat.inside = default_inside(devices);
    set(&mut nat.inside, table.read("inside", findings, prefixes_v4));
    set(&mut nat.exempt, table.read("exempt", findings, prefixes_v4));
    set(&mut nat.deterministic, table.read("deterministic", findings, boolean));
    nat.quota = table.read("quota", findings, count(1..=1_000_000)).map(|quota| quota as u32);
    set(&mut nat.hairpinning, table.read("hairpinning", findings, boolean));
    let short = || duration(Duration::ZERO..=YEAR);
    set(&mut nat.rest, table.read("rest", findings, short()));
    let answers = table.read("answer_unsolicited", findings, boolean).unwrap_or(true);
    let silence = table.read("silence", findings, short());
    set(&mut nat.silence, silence.map(Some));
    nat.silence = nat.silence.filter(|_| answers);
    let rate = table.read("reject_rate", findings, packet_rate(0..=1_000_000));
    set(&mut nat.answers_per_second, rate.map(|rate| rate as u32));
    set(&mut nat.ethertypes, table.read("ethertypes", findings, list(ethertype)));
    set(&mut nat.timeouts, table.section("timeouts", findings, timeouts::read));
    let forwards = table.sections("forward", findings, forward::read);
    nat.forwards = forwards.into_iter().flatten().collect();
    let log = table.read("log", findings, path);
    let sharing = sharing::read(table, findings);
    external?;
    check(table, &nat, findings);
    if sharing.is_some() {
        sharing::check(table, &nat, findings);
    }
    Some(NatFunction { nat, log, sharing })
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// The IPv4 addresses inside of a device that carries both directions.
fn default_inside(devices: &[Device]) -> PrefixList {
    let prefixes = devices.iter().filter_map(|device| match &device.orientation {
        Orientation::ByPrefix(inside) => Some(inside.iter()),
        Orientation::Inside | Orientation::Outside => None,
    });
    prefixes.flatten().filter(|prefix| prefix.address().is_ipv4()).copied().collect()
}

/// A conversion to prefixes of IPv4.
fn prefixes_v4(value: &Value<'_>, findings: &mut Findings) -> Option<PrefixList> {
    let v4 = |value: &Value<'_>, findings: &mut Findings| -> Option<Prefix> {
        let prefix = prefix(value, findings)?;
        if !prefix.address().is_ipv4() {
            let finding = value.mistake("addresses of IPv6 are never translated");
            findings.push(finding.help("write a prefix of IPv4"));
            return None;
        }
        Some(prefix)
    };
    Some(list(v4)(value, findings)?.into_iter().collect())
}

/// Notes settings that contradict each other.
fn check(table: &Table<'_>, nat: &NatConfig, findings: &mut Findings) {
    let at = |key: &str| table.key_of(key);
    if nat.mapping == Mapping::AddressAndPortDependent
        && nat.filtering != Filtering::AddressAndPortDependent
    {
        let message = "a mapping for one remote endpoint lets in no other";
        let finding = Finding::mistake(at("filtering"), message)
            .at(findings.place(&at("mapping")), "one external endpoint per remote one")
            .at(findings.place(&at("filtering")), "others would be let in")
            .help("remove `filtering`, or write `mapping = \"endpoint-independent\"`");
        findings.push(finding);
    }
    if let Some(address) = nat.external.iter().find(|a| nat.inside.contains((**a).into())) {
        let message = format!("{address} is inside and outside at once");
        let finding = Finding::mistake(at("external"), message)
            .at(findings.place(&at("external")), "")
            .help("external addresses must not be those of hosts that are translated");
        findings.push(finding);
    }
    if let Err(error) = Pool::new(nat) {
        let finding = Finding::mistake(at("deterministic"), error.to_string())
            .at(findings.place(&at("deterministic")), "each host has a block of ports")
            .help("give `inside` the prefixes of the hosts, and enough addresses for them");
        findings.push(finding);
    }
    for (index, forward) in nat.forwards.iter().enumerate() {
        let forward_key = |key: &str| at(&format!("forward[{index}].{key}"));
        let (external, internal) = (forward.external.0, forward.internal.0);
        if !nat.external.contains(&external) {
            let message = format!("nothing arrives for {external}: it is no external address");
            let finding = Finding::mistake(forward_key("external"), message)
                .at(findings.place(&at("external")), "the external addresses")
                .at(findings.place(&forward_key("external")), "not among them")
                .help("forward one of the external addresses, or add this one to `external`");
            findings.push(finding);
        }
        // Without `inside`, every host behind the inner device is translated.
        if nat.inside.iter().next().is_some() && !nat.inside.contains(internal.into()) {
            let message = format!("{internal} is not inside: its answers would not be translated");
            let finding = Finding::mistake(forward_key("internal"), message)
                .at(findings.place(&at("inside")), "the hosts that are translated")
                .at(findings.place(&forward_key("internal")), "not one of them")
                .help("forward to a host inside, or add this one to `inside`");
            findings.push(finding);
        }
        let same = |other: &crate::nat::Forward| {
            (other.protocol, other.external) == (forward.protocol, forward.external)
        };
        if let Some(earlier) = nat.forwards[..index].iter().position(same) {
            let message = "one external endpoint is forwarded twice";
            let finding = Finding::mistake(at(&format!("forward[{index}]")), message)
                .at(findings.place(&at(&format!("forward[{earlier}].external"))), "first here")
                .at(findings.place(&at(&format!("forward[{index}].external"))), "and again here")
                .help("give each forward an external endpoint of its own");
            findings.push(finding);
        }
    }
}
