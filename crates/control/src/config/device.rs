//! `[[device]]`: where packets come from and go to.

pub mod address;
mod filter;
pub mod live;
pub mod pcap;
pub mod registered;
pub mod sim;
pub mod traffic;

use std::net::IpAddr;
use std::path::Path;

use rheostat_io::{DeviceFacts, DeviceRegistration};
use rheostat_steer::{HashOptions, Orientation, PrefixList, Side};

pub use address::{LinkAddress, MacAddress};
pub use live::LiveConfig;
pub use pcap::{Pace, PcapConfig};
pub use registered::RegisteredDevice;
pub use sim::{Driver, SimConfig};
pub use traffic::TrafficConfig;

use live::LiveKind;

use rheostat_settings::declared::kind::{
    Kind, choice, integer, list, name, parsed, side, written_as,
};
use rheostat_settings::declared::{DeclaredSettings, Form, Setting};
use rheostat_settings::device::{Device, Named};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{
    kind, list as read_list, parsed as read_parsed, prefix as read_prefix,
};
use rheostat_settings::reader::{Table, Value};

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// The name that rules, flags and metrics use.
    pub name: String,
    /// What stands behind it.
    pub kind: DeviceKind,
    /// Which side it carries, or by which addresses the sides are distinguished where it carries both.
    pub orientation: Orientation,
    /// How its receive side hashes fragments and ICMP.
    pub hashing: HashOptions,
    /// Its addresses. Where devices have some, packets are routed; else they leave as they came, on the
    /// device opposite.
    pub addresses: Vec<LinkAddress>,
    /// Its address on the link, where it is not the interface's own.
    pub mac: Option<MacAddress>,
    /// The longest IP packet it sends, where that is not the interface's MTU.
    pub mtu: Option<u16>,
}

/// What stands behind a device.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceKind {
    /// Capture files.
    Pcap(PcapConfig),
    /// The simulated NIC.
    Sim(SimConfig),
    /// An interface of this machine.
    Live(LiveConfig),
    /// The kernel's sockets at addresses of this machine: for services only.
    Host,
    /// A device of a registered kind.
    Registered(RegisteredDevice),
}

/// The words of `kind`, as the file and the command line use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindName {
    Pcap,
    Sim,
    Live(LiveKind),
    Host,
    Registered(DeviceRegistration),
}

/// The kinds of devices that come along.
pub(crate) const KINDS: [(&str, KindName); 6] = [
    ("pcap", KindName::Pcap),
    ("sim", KindName::Sim),
    ("af_xdp", KindName::Live(LiveKind::AfXdp)),
    ("af_packet", KindName::Live(LiveKind::AfPacket)),
    ("tap", KindName::Live(LiveKind::Tap)),
    ("host", KindName::Host),
];

/// The kinds of devices that will come.
const PLANNED_KINDS: [&str; 1] = ["dpdk"];

/// The kinds that come along, and those that are registered, by name.
pub(crate) fn kinds(registered: &[DeviceRegistration]) -> Vec<(&'static str, KindName)> {
    let own = registered.iter().map(|kind| (kind.name, KindName::Registered(*kind)));
    KINDS.into_iter().chain(own).collect()
}

/// The kinds that are neither there nor registered, and will come.
pub(crate) fn planned_kinds(registered: &[DeviceRegistration]) -> Vec<&'static str> {
    let is_registered = |name: &str| registered.iter().any(|kind| kind.name == name);
    PLANNED_KINDS.into_iter().filter(|name| !is_registered(name)).collect()
}

/// The longest packet that every link carries whole (RFC 791, section 3.2).
const LEAST_MTU: u64 = 68;

impl Named for DeviceConfig {
    fn name(&self) -> &str {
        &self.name
    }
}

impl DeviceConfig {
    /// Reads one device; `None` when nothing can be made of it. The places of a device's keys are
    /// noted under `device[index]`. The device of a service has no sides: its peers are inside.
    pub(crate) fn read(
        table: &mut Table<'_>,
        is_service: bool,
        registered: &[DeviceRegistration],
        findings: &mut Findings,
    ) -> Option<DeviceConfig> {
        let keys = Keys::new();
        let name = keys.name.read(table, findings);
        let (kinds, planned) = (kinds(registered), planned_kinds(registered));
        let word = table.require("kind", "kind = \"sim\"", findings, kind(&kinds, &planned));
        let orientation = match is_service && !table.has("side") && !table.has("inside") {
            true => {
                table.ignore(&["side", "inside"]);
                Some(Orientation::Inside)
            }
            false => orientation(&keys, table, findings),
        };
        let hashing = keys.hash_fragments_and_icmp.read_or_default(table, findings);
        let addresses = match word {
            Some(KindName::Host) => {
                let own = HostKeys::new().address.read(table, findings);
                own.map(|own| own.into_iter().map(LinkAddress::of_host).collect())
            }
            _ => keys.address.read(table, findings),
        };
        let mac = keys.mac.read(table, findings);
        let mtu = keys.mtu.read(table, findings);
        let kind = match word {
            Some(KindName::Pcap) => PcapConfig::read(table, findings).map(DeviceKind::Pcap),
            Some(KindName::Sim) => Some(DeviceKind::Sim(SimConfig::read(table, findings))),
            Some(KindName::Live(kind)) => {
                Some(DeviceKind::Live(LiveConfig::read(kind, table, findings)))
            }
            Some(KindName::Host) => {
                table.refuse(&["mac", "mtu"], "kind = \"af_packet\"", findings);
                Some(DeviceKind::Host)
            }
            Some(KindName::Registered(kind)) => (kind.read)(table, findings)
                .map(|own| DeviceKind::Registered(RegisteredDevice(own))),
            None => None,
        };
        refuse_keys_of_others(word, registered, table, findings);
        let kind = kind?;
        Some(DeviceConfig {
            name: name?,
            kind,
            orientation: orientation?,
            hashing,
            addresses: addresses.unwrap_or_default(),
            mac,
            mtu,
        })
    }

    /// The device by what other settings refer to.
    pub(crate) fn as_device(&self) -> Device {
        Device { name: self.name.clone(), orientation: self.orientation.clone() }
    }

    /// The capture the device reads, if it reads one.
    pub fn input(&self) -> Option<&Path> {
        match &self.kind {
            DeviceKind::Pcap(pcap) => pcap.input.as_deref(),
            _ => None,
        }
    }

    /// The capture the device writes, if it writes one.
    pub fn output(&self) -> Option<&Path> {
        match &self.kind {
            DeviceKind::Pcap(pcap) => pcap.output.as_deref(),
            _ => None,
        }
    }

    /// What a run has to know of the device, whatever its kind.
    pub fn facts(&self) -> DeviceFacts {
        match &self.kind {
            DeviceKind::Pcap(pcap) => pcap.facts(),
            DeviceKind::Sim(sim) => sim.facts(),
            DeviceKind::Live(live) => live.facts(),
            DeviceKind::Host => DeviceFacts::PLAYED,
            DeviceKind::Registered(own) => own.0.facts(),
        }
    }
}

/// Refuses the keys of other kinds; where the kind is not known, whose keys they are is not known either.
fn refuse_keys_of_others(
    word: Option<KindName>,
    registered: &[DeviceRegistration],
    table: &mut Table<'_>,
    findings: &mut Findings,
) {
    let is_live = matches!(word, Some(KindName::Live(_)));
    let groups = [
        (names(&SimConfig::keys()), "sim", word == Some(KindName::Sim)),
        (names(&PcapConfig::declarations()), "pcap", word == Some(KindName::Pcap)),
        (names(&LiveConfig::keys()), "af_xdp", is_live),
    ];
    let own = registered
        .iter()
        .map(|kind| (names(&(kind.keys)()), kind.name, word == Some(KindName::Registered(*kind))));
    let all: Vec<_> = groups.into_iter().chain(own).collect();
    let is_own =
        |key: &&'static str| all.iter().any(|(keys, _, is_own)| *is_own && keys.contains(key));
    for (keys, name, _) in all.iter().filter(|(.., is_own)| !is_own) {
        let foreign: Vec<_> = keys.iter().copied().filter(|key| !is_own(key)).collect();
        match word {
            Some(_) => table.refuse(&foreign, &format!("kind = \"{name}\""), findings),
            None => table.ignore(&foreign),
        }
    }
}

fn names(settings: &[Setting]) -> Vec<&'static str> {
    settings.iter().map(|setting| setting.key).collect()
}

rheostat_settings::keys! {
    struct Keys {
        /// The name that rules, flags and metrics use.
        name: String = name(), required("name = \"lan\"");
        /// Which side it carries, where another device carries the other. The device of a service has no sides.
        side: Side = side();
        /// The prefixes of the inside network, where one device carries both sides.
        inside: PrefixList = inside();
        /// How its receive side hashes fragments and ICMP: by addresses, or in full, as the packets that they belong to.
        hash_fragments_and_icmp: HashOptions = choice(HASHINGS), default(HashOptions::default());
        /// Its addresses, each with the length of its link. Where devices have some, packets are routed; else they leave as they came,
        /// on the device opposite. With kind = "host", addresses of this machine, without length.
        address: Vec<LinkAddress> = list(address());
        /// Its address on the link, where it is not the interface's own.
        mac: MacAddress = mac();
        /// The longest IP packet it sends, where that is not the interface's MTU.
        mtu: u16 = integer(LEAST_MTU..=65_535), example("1500");
    }
}

rheostat_settings::keys! {
    /// Of devices of kind `host`.
    struct HostKeys {
        /// Addresses of this machine.
        address: Vec<IpAddr> = list(parsed("an address of this machine, such as \"127.0.0.1\" or \"::1\""));
    }
}

const HASHINGS: [(&str, HashOptions); 2] =
    [("addresses", HashOptions::AddressesOnly), ("full", HashOptions::Full)];

/// An address with the length of its link.
fn address() -> Kind<LinkAddress> {
    let example = "an address with its length, such as \"192.168.77.1/24\"";
    let write = |own: &LinkAddress| format!("{}/{}", own.address, own.length);
    written_as(example, read_parsed(example), write).noun("address with length")
}

/// The address of an interface on its link.
pub(super) fn mac() -> Kind<MacAddress> {
    let example = "it as text, such as \"02:00:00:00:00:01\"";
    written_as(example, read_parsed(example), |_| String::new()).noun("link address")
}

/// The keys of a device, of all kinds.
pub(crate) fn settings(registered: &[DeviceRegistration]) -> Vec<Setting> {
    let words: Vec<_> = kinds(registered).into_iter().map(|(name, _)| name).collect();
    let kind = Setting {
        form: Form::Text,
        kind: "word".to_owned(),
        bounds: Some(words.join(", ")),
        example: "\"sim\"".to_owned(),
        ..Setting::table("kind", "What stands behind it.", Vec::new()).required()
    };
    let mut keys = Keys::new().settings();
    keys.insert(1, kind);
    let of = |settings: Vec<Setting>, kind: &'static str| {
        settings.into_iter().map(move |setting| setting.within(format!("kind = \"{kind}\"")))
    };
    keys.extend(of(SimConfig::keys(), "sim"));
    keys.extend(of(PcapConfig::declarations(), "pcap"));
    let live = LiveConfig::keys().into_iter().map(|setting| match setting.condition {
        Some(condition) => setting.within(condition),
        None => setting.within("kind = \"af_xdp\"`, `kind = \"af_packet\"` or `kind = \"tap\""),
    });
    keys.extend(live);
    for kind in registered {
        keys.extend(of((kind.keys)(), kind.name));
    }
    keys
}

fn orientation(keys: &Keys, table: &mut Table<'_>, findings: &mut Findings) -> Option<Orientation> {
    let side = keys.side.read(table, findings);
    let inside = keys.inside.read(table, findings);
    match (table.has("side"), table.has("inside")) {
        (true, false) => side.map(|side| match side {
            Side::Inside => Orientation::Inside,
            Side::Outside => Orientation::Outside,
        }),
        (false, true) => inside.map(Orientation::ByPrefix),
        (true, true) => {
            let finding = Finding::mistake(table.key(), "a device carries one side or both")
                .at(findings.place(&table.key_of("side")), "all packets come from one side")
                .at(findings.place(&table.key_of("inside")), "packets come from both sides")
                .help("keep `side` if another device carries the other side, else `inside`");
            findings.push(finding);
            None
        }
        (false, false) => {
            let help = "add `side = \"inside\"` or `side = \"outside\"` if another device carries \
                        the other side, or, if this one carries both, the prefixes of the inside \
                        network: `inside = [\"10.0.0.0/8\"]`";
            let finding =
                table.mistake("the device has neither `side` nor `inside`", "this device");
            findings.push(finding.help(help));
            None
        }
    }
}

/// At least one prefix.
fn inside() -> Kind<PrefixList> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        let prefixes = read_list(read_prefix)(value, findings)?;
        if prefixes.is_empty() {
            let message = "`inside` names no prefix, so nothing would come from inside";
            findings.push(value.mistake(message).help("write the prefixes of the inside network"));
            return None;
        }
        Some(prefixes.into_iter().collect())
    };
    Kind::unshown(Form::List, read).noun("address prefix").such_as("[\"10.0.0.0/8\"]")
}
