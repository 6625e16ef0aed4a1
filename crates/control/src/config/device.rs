//! `[[device]]`: where packets come from and go to.

pub mod address;
mod filter;
mod host;
mod kind;
pub mod live;
pub mod pcap;
pub mod registered;
pub mod sim;
pub mod traffic;

use std::path::Path;

use rheostat_io::{DeviceFacts, DeviceRegistration};
use rheostat_steer::{HashOptions, Orientation, PrefixList, Side};

pub use address::{LinkAddress, MacAddress};
pub use kind::summaries;
pub(crate) use kind::{Argument, KINDS, NamedKind, kinds, planned_kinds};
pub use live::LiveConfig;
pub use pcap::{Pace, PcapConfig};
pub use registered::RegisteredDevice;
pub use sim::{Driver, SimConfig};
pub use traffic::TrafficConfig;

use rheostat_settings::declared::kind::{Kind, choice, integer, list, name, side, written_as};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::device::{Device, Named};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{
    kind as read_kind, list as read_list, parsed as read_parsed, prefix as read_prefix,
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
        let word = table.require("kind", "kind = \"sim\"", findings, read_kind(&kinds, &planned));
        let orientation = match is_service && !table.has("side") && !table.has("inside") {
            true => {
                table.ignore(&["side", "inside"]);
                Some(Orientation::Inside)
            }
            false => orientation(&keys, table, findings),
        };
        let hashing = keys.hash_fragments_and_icmp.read_or_default(table, findings);
        let addresses = match word.and_then(NamedKind::addresses) {
            Some(read) => read(table, findings),
            None => keys.address.read(table, findings),
        };
        let mac = keys.mac.read(table, findings);
        let mtu = keys.mtu.read(table, findings);
        let kind = match word {
            Some(NamedKind::BuiltIn(kind)) => (kind.read)(table, findings),
            Some(NamedKind::Registered(kind)) => (kind.read)(table, findings)
                .map(|own| DeviceKind::Registered(RegisteredDevice(own))),
            None => None,
        };
        refuse_keys_of_others(word, &kinds, table, findings);
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
    word: Option<NamedKind>,
    kinds: &[(&'static str, NamedKind)],
    table: &mut Table<'_>,
    findings: &mut Findings,
) {
    let mut known = word.as_ref().map_or_else(Vec::new, NamedKind::keys);
    for (name, kind) in kinds {
        let foreign: Vec<_> = kind.keys().into_iter().filter(|key| !known.contains(key)).collect();
        match word {
            Some(_) => table.refuse(&foreign, &format!("kind = \"{name}\""), findings),
            None => table.ignore(&foreign),
        }
        known.extend(foreign);
    }
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
    let kinds = kinds(registered);
    let words: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    let kind = Setting {
        form: Form::Text,
        kind: "word".to_owned(),
        bounds: Some(words.join(", ")),
        example: "\"sim\"".to_owned(),
        ..Setting::table("kind", "What stands behind it.", Vec::new()).required()
    };
    let mut keys = Keys::new().settings();
    keys.insert(1, kind);
    let all: Vec<_> = kinds.iter().map(|(name, kind)| (*name, kind.settings())).collect();
    let mut own: Vec<&Setting> = Vec::new();
    for setting in all.iter().flat_map(|(_, settings)| settings) {
        // Several kinds may have it.
        if !own.contains(&setting) {
            own.push(setting);
        }
    }
    keys.extend(own.into_iter().map(|setting| {
        let having = all.iter().filter(|(_, settings)| settings.contains(setting));
        let having: Vec<_> = having.map(|(name, _)| format!("kind = \"{name}\"")).collect();
        let scope = match having.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{}` or `{last}", others.join("`, `")),
            None => String::new(),
        };
        setting.clone().within(scope)
    }));
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
