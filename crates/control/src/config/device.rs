//! `[[device]]`: where packets come from and go to.

pub mod address;
mod filter;
pub mod live;
pub mod pcap;
pub mod sim;
pub mod traffic;

use std::net::IpAddr;
use std::path::Path;

use rheostat_steer::{HashOptions, Orientation, PrefixList, Side};

pub use address::{LinkAddress, MacAddress};
pub use live::LiveConfig;
pub use pcap::{Pace, PcapConfig};
pub use sim::{Driver, SimConfig};
pub use traffic::TrafficConfig;

use live::LiveKind;

use rheostat_settings::device::{Device, Named, side};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::{choice, kind, list, name, parsed, prefix};
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
}

/// The words of `kind`, as the file and the command line use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindName {
    Pcap,
    Sim,
    Live(LiveKind),
    Host,
}

/// The kinds of devices there are.
pub(crate) const KINDS: [(&str, KindName); 6] = [
    ("pcap", KindName::Pcap),
    ("sim", KindName::Sim),
    ("af_xdp", KindName::Live(LiveKind::AfXdp)),
    ("af_packet", KindName::Live(LiveKind::AfPacket)),
    ("tap", KindName::Live(LiveKind::Tap)),
    ("host", KindName::Host),
];

/// The kinds of devices that will come.
pub(crate) const PLANNED_KINDS: [&str; 1] = ["dpdk"];

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
        findings: &mut Findings,
    ) -> Option<DeviceConfig> {
        let name = table.require("name", "name = \"lan\"", findings, name);
        let word = kind(&KINDS, &PLANNED_KINDS);
        let word = table.require("kind", "kind = \"sim\"", findings, word);
        let orientation = match is_service && !table.has("side") && !table.has("inside") {
            true => {
                table.ignore(&["side", "inside"]);
                Some(Orientation::Inside)
            }
            false => orientation(table, findings),
        };
        let hashings = [("addresses", HashOptions::AddressesOnly), ("full", HashOptions::Full)];
        let hashing = table.read("hash_fragments_and_icmp", findings, choice(&hashings));
        let addresses = table.read("address", findings, |value, findings| {
            if word == Some(KindName::Host) {
                let example = "an address of this machine, such as \"127.0.0.1\" or \"::1\"";
                let own = list(parsed::<IpAddr>(example))(value, findings)?;
                return Some(own.into_iter().map(LinkAddress::of_host).collect());
            }
            let example = "an address with its length, such as \"192.168.77.1/24\"";
            list(parsed::<LinkAddress>(example))(value, findings)
        });
        let example = "it as text, such as \"02:00:00:00:00:01\"";
        let mac = table.read("mac", findings, parsed::<MacAddress>(example));
        let mtu = table.read("mtu", findings, integer(LEAST_MTU..=65_535));
        let kind = match word {
            Some(KindName::Pcap) => {
                let captures = PcapConfig::read(table, findings);
                table.refuse(&SimConfig::KEYS, "kind = \"sim\"", findings);
                table.refuse(&LiveConfig::KEYS, "kind = \"af_xdp\"", findings);
                DeviceKind::Pcap(captures)
            }
            Some(KindName::Sim) => {
                let nic = SimConfig::read(table, findings);
                table.refuse(&PcapConfig::KEYS, "kind = \"pcap\"", findings);
                table.refuse(&LiveConfig::KEYS, "kind = \"af_xdp\"", findings);
                DeviceKind::Sim(nic)
            }
            Some(KindName::Live(kind)) => {
                let live = LiveConfig::read(kind, table, findings);
                table.refuse(&SimConfig::KEYS, "kind = \"sim\"", findings);
                table.refuse(&PcapConfig::KEYS, "kind = \"pcap\"", findings);
                DeviceKind::Live(live)
            }
            Some(KindName::Host) => {
                table.refuse(&SimConfig::KEYS, "kind = \"sim\"", findings);
                table.refuse(&PcapConfig::KEYS, "kind = \"pcap\"", findings);
                table.refuse(&LiveConfig::KEYS, "kind = \"af_xdp\"", findings);
                table.refuse(&["mac", "mtu"], "kind = \"af_packet\"", findings);
                DeviceKind::Host
            }
            None => {
                table.ignore(&PcapConfig::KEYS);
                table.ignore(&SimConfig::KEYS);
                table.ignore(&LiveConfig::KEYS);
                return None;
            }
        };
        Some(DeviceConfig {
            name: name?,
            kind,
            orientation: orientation?,
            hashing: hashing.unwrap_or_default(),
            addresses: addresses.unwrap_or_default(),
            mac,
            mtu: mtu.map(|mtu| mtu as u16),
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
            DeviceKind::Sim(_) | DeviceKind::Live(_) | DeviceKind::Host => None,
        }
    }

    /// The capture the device writes, if it writes one.
    pub fn output(&self) -> Option<&Path> {
        match &self.kind {
            DeviceKind::Pcap(pcap) => pcap.output.as_deref(),
            DeviceKind::Sim(_) | DeviceKind::Live(_) | DeviceKind::Host => None,
        }
    }
}

fn orientation(table: &mut Table<'_>, findings: &mut Findings) -> Option<Orientation> {
    let side = table.read("side", findings, side);
    let inside = table.read("inside", findings, inside_prefixes);
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

/// A conversion to at least one prefix.
fn inside_prefixes(value: &Value<'_>, findings: &mut Findings) -> Option<PrefixList> {
    let prefixes = list(prefix)(value, findings)?;
    if prefixes.is_empty() {
        let message = "`inside` names no prefix, so nothing would come from inside";
        findings.push(value.mistake(message).help("write the prefixes of the inside network"));
        return None;
    }
    Some(prefixes.into_iter().collect())
}
