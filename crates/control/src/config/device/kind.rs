//! The kinds of devices by name: those that come along, one entry each, and those that a program registers. Reading, the reference
//! of keys, `--device`, help and messages follow from the entry.

use rheostat_io::DeviceRegistration;
use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

use super::live::LiveKind;
use super::{DeviceKind, LinkAddress, LiveConfig, PcapConfig, SimConfig, host};

/// A kind of device that comes along.
pub(crate) struct BuiltInKind {
    /// Its name in `kind` and in `--device`.
    pub(crate) name: &'static str,
    /// What stands behind such a device, in a few words for `--help`.
    summary: &'static str,
    /// Whether services run on it.
    serves: bool,
    /// What follows the kind in `--device NAME=KIND:ARGUMENT`.
    pub(crate) argument: Argument,
    /// The keys that not all kinds have.
    pub(super) keys: fn() -> Vec<Setting>,
    /// Reads them; `None` if nothing can be made of them.
    pub(super) read: fn(&mut Table<'_>, &mut Findings) -> Option<DeviceKind>,
    /// Reads its addresses, where they have no length.
    addresses: Option<ReadAddresses>,
}

/// Reads the addresses of a device; `None` where they are wrong or missing.
pub(super) type ReadAddresses = fn(&mut Table<'_>, &mut Findings) -> Option<Vec<LinkAddress>>;

/// The form of what follows a kind in `--device`.
#[derive(Clone, Copy)]
pub(crate) enum Argument {
    /// The name of a capture.
    Capture,
    /// Packets per second.
    Rate,
    /// An interface, and its ring if that is given.
    Interface(LiveKind),
    /// Addresses of this machine.
    Addresses,
}

/// The kinds that come along.
pub(crate) static KINDS: [BuiltInKind; 6] = [
    BuiltInKind {
        name: "pcap",
        summary: "a capture",
        serves: false,
        argument: Argument::Capture,
        keys: PcapConfig::declarations,
        read: |table, findings| PcapConfig::read(table, findings).map(DeviceKind::Pcap),
        addresses: None,
    },
    BuiltInKind {
        name: "sim",
        summary: "a simulated NIC with generated traffic of this rate",
        serves: false,
        argument: Argument::Rate,
        keys: SimConfig::keys,
        read: |table, findings| Some(DeviceKind::Sim(SimConfig::read(table, findings))),
        addresses: None,
    },
    BuiltInKind {
        name: "af_xdp",
        summary: "an interface, by rings shared with its driver",
        serves: true,
        argument: Argument::Interface(LiveKind::AfXdp),
        keys: || LiveConfig::keys(LiveKind::AfXdp),
        read: |table, findings| live(LiveKind::AfXdp, table, findings),
        addresses: None,
    },
    BuiltInKind {
        name: "af_packet",
        summary: "an interface, by rings of packet sockets",
        serves: true,
        argument: Argument::Interface(LiveKind::AfPacket),
        keys: || LiveConfig::keys(LiveKind::AfPacket),
        read: |table, findings| live(LiveKind::AfPacket, table, findings),
        addresses: None,
    },
    BuiltInKind {
        name: "tap",
        summary: "an interface that the run makes, with the kernel at the other end",
        serves: true,
        argument: Argument::Interface(LiveKind::Tap),
        keys: || LiveConfig::keys(LiveKind::Tap),
        read: |table, findings| live(LiveKind::Tap, table, findings),
        addresses: None,
    },
    BuiltInKind {
        name: "host",
        summary: "the kernel's sockets at addresses of this machine, for services in development",
        serves: true,
        argument: Argument::Addresses,
        keys: Vec::new,
        read: |table, findings| {
            host::refuse_link_keys(table, findings);
            Some(DeviceKind::Host)
        },
        addresses: Some(host::addresses),
    },
];

/// The kinds of devices that will come.
const PLANNED_KINDS: [&str; 1] = ["dpdk"];

fn live(kind: LiveKind, table: &mut Table<'_>, findings: &mut Findings) -> Option<DeviceKind> {
    Some(DeviceKind::Live(LiveConfig::read(kind, table, findings)))
}

/// A kind that configurations and `--device` can name.
#[derive(Clone, Copy)]
pub(crate) enum NamedKind {
    BuiltIn(&'static BuiltInKind),
    Registered(DeviceRegistration),
}

impl NamedKind {
    /// The keys that not all kinds have.
    pub(super) fn settings(&self) -> Vec<Setting> {
        match self {
            NamedKind::BuiltIn(kind) => (kind.keys)(),
            NamedKind::Registered(kind) => (kind.keys)(),
        }
    }

    /// The names of [`NamedKind::settings`].
    pub(super) fn keys(&self) -> Vec<&'static str> {
        self.settings().iter().map(|setting| setting.key).collect()
    }

    /// What reads its addresses, where they have no length.
    pub(super) fn addresses(self) -> Option<ReadAddresses> {
        match self {
            NamedKind::BuiltIn(kind) => kind.addresses,
            NamedKind::Registered(_) => None,
        }
    }
}

/// The kinds that come along, and those that are registered, by name.
pub(crate) fn kinds(registered: &[DeviceRegistration]) -> Vec<(&'static str, NamedKind)> {
    let built_in = KINDS.iter().map(|kind| (kind.name, NamedKind::BuiltIn(kind)));
    let own = registered.iter().map(|kind| (kind.name, NamedKind::Registered(*kind)));
    built_in.chain(own).collect()
}

/// The kinds that are neither there nor registered, and will come.
pub(crate) fn planned_kinds(registered: &[DeviceRegistration]) -> Vec<&'static str> {
    let is_registered = |name: &str| registered.iter().any(|kind| kind.name == name);
    PLANNED_KINDS.into_iter().filter(|name| !is_registered(name)).collect()
}

/// The names and summaries of kinds that come along or are registered, for `--help`; of a service, without those that come along and
/// do not serve.
pub fn summaries(
    registered: &[DeviceRegistration],
    of_service: bool,
) -> Vec<(&'static str, &'static str)> {
    let fit = KINDS.iter().filter(|kind| kind.serves || !of_service);
    let own = registered.iter().map(|kind| (kind.name, kind.summary));
    fit.map(|kind| (kind.name, kind.summary)).chain(own).collect()
}
