//! `[function.nat]`: which addresses are translated, and to what.

pub(super) mod describe;
pub(super) mod fixed;
mod forward;
mod pool;
mod sharing;
mod timeouts;

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::nat::{Filtering, Mapping, NatConfig, Pool, Pooling, Sharing};
use rheostat_steer::{Orientation, Prefix, PrefixList};

use rheostat_settings::declared::kind::{
    Kind, boolean, choice, count, duration, ethertype, list, packet_rate, path,
};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::convert::{list as read_list, prefix};
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
    let keys = Keys::new();
    let external = keys.external.read(table, findings);
    let mut nat = NatConfig::new(external.clone().unwrap_or_default());
    nat.ports = keys.ports.read_or_default(table, findings);
    nat.mapping = keys.mapping.read_or_default(table, findings);
    let filtering = keys.filtering.read_given(table, findings);
    nat.filtering = filtering.unwrap_or(match nat.mapping {
        Mapping::AddressAndPortDependent => Filtering::AddressAndPortDependent,
        Mapping::EndpointIndependent => nat.filtering,
    });
    nat.pooling = keys.pooling.read_or_default(table, findings);
    nat.inside = keys.inside.read(table, findings).unwrap_or_else(|| default_inside(devices));
    nat.exempt = keys.exempt.read(table, findings).unwrap_or_default();
    nat.deterministic = keys.deterministic.read_or_default(table, findings);
    nat.quota = keys.quota.read(table, findings);
    nat.hairpinning = keys.hairpinning.read_or_default(table, findings);
    nat.rest = keys.rest.read_or_default(table, findings);
    let answers = keys.answer_unsolicited.read_or_default(table, findings);
    nat.silence = Some(keys.silence.read_or_default(table, findings)).filter(|_| answers);
    nat.answers_per_second = keys.reject_rate.read_or_default(table, findings);
    nat.ethertypes = keys.ethertypes.read_or_default(table, findings);
    nat.timeouts = table.section("timeouts", findings, timeouts::read).unwrap_or_default();
    let forwards = table.sections("forward", findings, forward::read);
    nat.forwards = forwards.into_iter().flatten().collect();
    let log = keys.log.read(table, findings);
    let sharing = sharing::read(table, findings);
    external?;
    check(table, &nat, findings);
    if sharing.is_some() {
        sharing::check(table, &nat, findings);
    }
    Some(NatFunction { nat, log, sharing })
}

/// Defaults, without an external address.
fn defaults() -> NatConfig {
    NatConfig::new(Vec::new())
}

const SHORT: RangeInclusive<Duration> = Duration::ZERO..=YEAR;
/// How long an unsolicited SYN stays unanswered (RFC 5382, REQ-4).
const SILENCE: Duration = Duration::from_secs(6);

rheostat_settings::keys! {
    struct Keys {
        /// The addresses that inner ones are translated to: addresses, and ranges of them.
        external: Vec<Ipv4Addr> = pool::addresses(), required("external = [\"203.0.113.1\"]");
        /// The ports that flows get; those of privileged flows besides.
        ports: RangeInclusive<u16> = pool::ports(), default(defaults().ports);
        /// When flows of an inner endpoint share an external one (RFC 4787, section 4.1).
        mapping: Mapping = choice(MAPPINGS), default(Mapping::default());
        /// The hosts whose packets are let in to an external endpoint (RFC 4787, section 5). By default address-dependent, or as the
        /// mapping, where that is address-and-port-dependent.
        filtering: Filtering = choice(FILTERINGS), example("\"address-dependent\"");
        /// Whether an inner address always has the same external one, or gets another where that has no ports left (RFC 4787,
        /// section 4.1).
        pooling: Pooling = choice(POOLINGS), default(Pooling::default());
        /// The hosts that are translated; without it, those that the one device has inside, or all that send from inside.
        inside: PrefixList = prefixes_v4();
        /// Destinations that see inner addresses.
        exempt: PrefixList = prefixes_v4();
        /// Whether each host of `inside` has a block of ports that follows from its address (RFC 7422).
        deterministic: bool = boolean(), default(defaults().deterministic);
        /// External ports one host may have at a time; any number without it.
        quota: u32 = count(1..=1_000_000), example("1000");
        /// Whether hosts inside reach each other by external endpoints.
        hairpinning: bool = boolean(), default(defaults().hairpinning);
        /// How long a port rests before another endpoint gets it (RFC 6888, REQ-8).
        rest: Duration = duration(SHORT), default(defaults().rest);
        /// Whether SYNs from outside that no flow expects are answered.
        answer_unsolicited: bool = boolean(), default(true);
        /// How long an unsolicited SYN stays unanswered (RFC 5382, REQ-4).
        silence: Duration = duration(SHORT), default(SILENCE);
        /// ICMP errors and resets that each shard sends at most.
        reject_rate: u32 = packet_rate(0..=1_000_000), default(defaults().answers_per_second);
        /// Ethernet types besides IP that pass.
        ethertypes: Vec<u16> = list(ethertype()), default(defaults().ethertypes);
        /// The file that mappings are logged to, one JSON object a line; none without it.
        log: PathBuf = path(), example("\"nat.jsonl\"");
    }
}

/// The keys of `[function.nat]`.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new().settings();
    let log = keys.pop();
    keys.push(Setting::table(
        "timeouts",
        "How long flows live without a packet.",
        timeouts::keys(),
    ));
    keys.push(Setting::tables(
        "forward",
        "External endpoints with a fixed inner one.",
        forward::keys(),
    ));
    keys.into_iter().chain(log).chain(sharing::keys()).collect()
}

/// The IPv4 addresses inside of a device that carries both directions.
fn default_inside(devices: &[Device]) -> PrefixList {
    let prefixes = devices.iter().filter_map(|device| match &device.orientation {
        Orientation::ByPrefix(inside) => Some(inside.iter()),
        Orientation::Inside | Orientation::Outside => None,
    });
    prefixes.flatten().filter(|prefix| prefix.address().is_ipv4()).copied().collect()
}

/// Prefixes of IPv4.
fn prefixes_v4() -> Kind<PrefixList> {
    let v4 = |value: &Value<'_>, findings: &mut Findings| -> Option<Prefix> {
        let prefix = prefix(value, findings)?;
        if !prefix.address().is_ipv4() {
            let finding = value.mistake("addresses of IPv6 are never translated");
            findings.push(finding.help("write a prefix of IPv4"));
            return None;
        }
        Some(prefix)
    };
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        Some(read_list(v4)(value, findings)?.into_iter().collect())
    };
    Kind::unshown(Form::List, read).noun("prefix of IPv4").such_as("[\"10.0.0.0/8\"]")
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
