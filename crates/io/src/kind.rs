//! Kinds of devices: what configurations name, what a run has to know of a configured device, and how it is opened.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rheostat_base::{Clock, DeviceId, QueueId};
use rheostat_packet::Mempool;
use rheostat_settings::declared::{Setting, kind};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_steer::{HashOptions, Orientation, Steering};

use crate::{Device, OpenError, PacketConfig, SimConfig};

/// A kind of device that configurations and `--device` can name.
#[derive(Clone, Copy)]
pub struct DeviceRegistration {
    /// Its name: `kind = "NAME"`, and `--device lan=NAME:ARGUMENT`.
    pub name: &'static str,
    /// What stands behind such a device, in a few words for `--help`; empty if its author gives none.
    pub summary: &'static str,
    /// The keys that devices of this kind have beside those that all have; they are refused with other kinds.
    pub keys: fn() -> Vec<Setting>,
    /// Reads them; `None` if nothing can be made of them, which is noted.
    pub read: ReadDevice,
    /// Reads the argument of `--device`.
    ///
    /// # Errors
    /// The reason, without a full stop.
    pub from_argument: DeviceOfArgument,
}

/// Reads the settings of a device from its table.
pub type ReadDevice =
    &'static (dyn Fn(&mut Table<'_>, &mut Findings) -> Option<Arc<dyn DeviceSetup>> + Send + Sync);

/// Reads the argument of `--device` for a kind.
pub type DeviceOfArgument =
    &'static (dyn Fn(&str) -> Result<Arc<dyn DeviceSetup>, String> + Send + Sync);

/// A device with its settings, before it is opened.
pub trait DeviceSetup: fmt::Debug + Send + Sync {
    /// What a run has to know of it.
    fn facts(&self) -> DeviceFacts;

    /// Its kind and its settings in words, for `rheo check` and the head of a run. Two setups of the same words are equal.
    fn describe(&self) -> String;

    /// Looks at the device as far as can be seen without opening it.
    ///
    /// # Errors
    /// As [`DeviceSetup::open`].
    fn check(&self, _lanes: u16) -> Result<(), OpenError> {
        Ok(())
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`OpenError`] names the device, and why it cannot be opened.
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Device>, OpenError>;
}

/// What opening a device takes beside its own settings.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// The device's name in the configuration.
    pub name: &'a str,
    /// Its number: its place among the devices of the run.
    pub id: DeviceId,
    /// Lanes, each of which needs a pair of queues.
    pub lanes: u16,
    /// Lanes that receive from one queue.
    pub claimants: u16,
    /// Whether packets leave in the order in which lanes have claimed them.
    pub ordered: bool,
    /// How fragments and ICMP are hashed.
    pub hashing: HashOptions,
    /// Which side it carries.
    pub orientation: &'a Orientation,
    /// Places packets on queues.
    pub steering: &'a Arc<Steering>,
    /// Where buffers come from.
    pub pool: &'a Mempool,
    /// The run's clock.
    pub clock: &'a Clock,
    /// The run's seed, which what is random is drawn from.
    pub seed: u64,
    /// The queue of each bucket, where the device takes the place of one whose interface was gone; in turn otherwise.
    pub placement: Option<&'a [QueueId]>,
    /// Counts arrivals: of all devices that follow each other in this place, so that the order of their packets is known.
    pub stamps: &'a Arc<AtomicU32>,
}

impl Opening<'_> {
    /// Packet sockets at an interface of this machine, for a kind that is one.
    pub fn packet_sockets(&self, interface: &str) -> PacketConfig {
        PacketConfig {
            device: self.id,
            hashing: self.hashing,
            placement: self.placement.map(<[QueueId]>::to_vec),
            stamps: self.stamps.clone(),
            ..PacketConfig::new(self.name, interface, self.lanes, self.steering.clone())
        }
    }

    /// A simulated NIC with a queue for each lane, for a kind that has a [`Source`](crate::Source) of packets and places them as
    /// hardware does. They arrive at the times of the source; with [`Pacing::Lossless`](crate::Pacing::Lossless), as fast as they
    /// are taken.
    pub fn nic(&self) -> SimConfig {
        let mut nic = SimConfig::new(self.name, self.lanes, self.steering.clone());
        (nic.device, nic.hash, nic.claimants) = (self.id, self.hashing, self.claimants);
        nic
    }
}

/// What a run, its checks and its plans have to know of a device, whatever its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The interface of this machine that it is, as the kernel names it; a `%d` in it is a number that the kernel chooses. None
    /// for devices that are no interface, and where the interface is still to be given.
    pub interface: Option<String>,
    /// Whether it is an interface of this machine. Otherwise its packets are played: from a file, a generator or memory.
    pub is_live: bool,
    /// Whether opening makes the interface, so that it need not be there before. The kernel is at its other end.
    pub makes_interface: bool,
    /// Whether it reads a capture, in the order and at the times that it has.
    pub reads_capture: bool,
    /// Whether packets come as fast as they are taken, so that idle lanes wait for each other and not for packets.
    pub comes_as_taken: bool,
    /// Whether the kernel writes into the buffers of the pool, which is mapped for it.
    pub maps_pool: bool,
    /// Whether packets of TCP are lost if the interface merges or splits segments.
    pub needs_whole_segments: bool,
    /// Whether the run goes on without the interface when that is gone, and opens the device anew when an interface of its name is
    /// there again. Otherwise the run ends with it.
    pub waits_for_interface: bool,
    /// Bytes of the rings of each lane.
    pub ring_bytes: u64,
    /// Why several lanes cannot receive from one of its queues, if they cannot.
    pub own_queues: Option<Refusal>,
    /// Why a service beside the kernel cannot have it, if it cannot.
    pub not_beside_kernel: Option<Refusal>,
}

/// Why a device does not go with a setting of another table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key of the device that is in the way.
    pub key: &'static str,
    /// The words beside its place in the file; empty where the place is enough.
    pub label: &'static str,
    /// The reason.
    pub why: &'static str,
    /// What to write instead; empty where the setting of the other table has to change.
    pub help: &'static str,
}

impl DeviceFacts {
    /// A device that plays packets at its own pace, from queues that lanes may share.
    pub const PLAYED: DeviceFacts = DeviceFacts {
        interface: None,
        is_live: false,
        makes_interface: false,
        reads_capture: false,
        comes_as_taken: false,
        maps_pool: false,
        needs_whole_segments: false,
        waits_for_interface: false,
        ring_bytes: 0,
        own_queues: None,
        not_beside_kernel: None,
    };
}

impl DeviceRegistration {
    /// An own kind that is opened with the text that its key `argument` has, or that stands behind the kind in
    /// `--device NAME=KIND:ARGUMENT`. Its devices play packets from queues that each lane has for itself.
    ///
    /// The registration is kept for the rest of the program, and `open` with it.
    pub fn new<O, D, E>(name: &'static str, open: O) -> DeviceRegistration
    where
        O: Fn(&str, &Opening<'_>) -> Result<D, E> + Send + Sync + 'static,
        D: Device + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let open = kept(open);
        let read = |table: &mut Table<'_>, findings: &mut Findings| {
            Some((OwnKeys::new().argument.read_or_default(table, findings), None))
        };
        own(name, open, || OwnKeys::new().settings(), read, None)
    }

    /// An own kind that is an interface of this machine, with the name that its key `interface` has, or that stands behind the kind in
    /// `--device NAME=KIND:INTERFACE`. Chains and services run on it. When the interface is gone, the run ends, or with
    /// `on_loss = "wait"` goes on and opens the device anew when the interface is there again: `open` is called with
    /// [`Opening::placement`] then. Each lane has a queue of its own.
    ///
    /// The registration is kept for the rest of the program, and `open` with it.
    pub fn interface<O, D, E>(name: &'static str, open: O) -> DeviceRegistration
    where
        O: Fn(&str, &Opening<'_>) -> Result<D, E> + Send + Sync + 'static,
        D: Device + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let open = kept(open);
        let read = |table: &mut Table<'_>, findings: &mut Findings| {
            let keys = OwnInterfaceKeys::new();
            let interface = keys.interface.read(table, findings);
            let waits = keys.on_loss.read_or_default(table, findings);
            Some((interface?, Some(waits)))
        };
        own(name, open, || OwnInterfaceKeys::new().settings(), read, Some(false))
    }
}

rheostat_settings::keys! {
    struct OwnKeys {
        /// The text that the device is opened with.
        argument: String = kind::text(), default(String::new());
    }
}

rheostat_settings::keys! {
    struct OwnInterfaceKeys {
        /// The interface, as the kernel names it.
        interface: String = kind::text().noun("interface"), required("interface = \"eth1\"");
        /// What follows when the interface is gone: exit (the run ends), or wait (the device is opened anew when the interface is there
        /// again).
        on_loss: bool = kind::choice([("exit", false), ("wait", true)]), default(false);
    }
}

/// Reads the text that a device is opened with, and whether it waits for its interface.
type ReadOwn = fn(&mut Table<'_>, &mut Findings) -> Option<(String, Option<bool>)>;

/// The registration of a kind that `open` opens. A device of an argument does the latter as `waits` states.
fn own(
    name: &'static str,
    open: &'static OpenOwn,
    keys: fn() -> Vec<Setting>,
    read: ReadOwn,
    waits: Option<bool>,
) -> DeviceRegistration {
    let setup = move |argument: String, waits| -> Arc<dyn DeviceSetup> {
        Arc::new(Own { kind: name, argument, waits, open })
    };
    DeviceRegistration {
        name,
        summary: "",
        keys,
        read: Box::leak(Box::new(move |table: &mut Table<'_>, findings: &mut Findings| {
            read(table, findings).map(|(argument, waits)| setup(argument, waits))
        })),
        from_argument: Box::leak(Box::new(move |argument: &str| {
            Ok(setup(argument.to_owned(), waits))
        })),
    }
}

/// `open` for the rest of the program, with the device named in errors.
fn kept<O, D, E>(open: O) -> &'static OpenOwn
where
    O: Fn(&str, &Opening<'_>) -> Result<D, E> + Send + Sync + 'static,
    D: Device + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let open = move |argument: &str, opening: &Opening<'_>| match open(argument, opening) {
        Ok(device) => Ok(Box::new(device) as Box<dyn Device>),
        Err(source) => {
            let (device, source) = (opening.name.to_owned(), source.into());
            Err(OpenError::Own { device, source })
        }
    };
    Box::leak(Box::new(open))
}

/// By the name: no two that are registered have the same.
impl PartialEq for DeviceRegistration {
    fn eq(&self, other: &DeviceRegistration) -> bool {
        self.name == other.name
    }
}

impl Eq for DeviceRegistration {}

impl fmt::Debug for DeviceRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceRegistration").field(&self.name).finish()
    }
}

type OpenOwn = dyn Fn(&str, &Opening<'_>) -> Result<Box<dyn Device>, OpenError> + Send + Sync;

/// A device of a kind that a function opens.
struct Own {
    kind: &'static str,
    /// The text that it is opened with: the name of the interface, where it is one.
    argument: String,
    /// Whether the run goes on without the interface; `None` where the device is none.
    waits: Option<bool>,
    open: &'static OpenOwn,
}

impl DeviceSetup for Own {
    fn facts(&self) -> DeviceFacts {
        // Nothing is known of its queues.
        let own_queues = Refusal {
            key: "kind",
            label: self.kind,
            why: "its kind gives each lane a queue of its own",
            help: "",
        };
        let played = DeviceFacts { own_queues: Some(own_queues), ..DeviceFacts::PLAYED };
        let Some(waits_for_interface) = self.waits else { return played };
        DeviceFacts {
            interface: Some(self.argument.clone()),
            is_live: true,
            waits_for_interface,
            not_beside_kernel: Some(Refusal {
                why: "its kind takes all packets of the interface",
                help: "write kind = \"af_xdp\" or \"af_packet\", or remove `beside_kernel`",
                ..own_queues
            }),
            ..played
        }
    }

    fn describe(&self) -> String {
        let Own { kind, argument, waits, .. } = self;
        match waits {
            None => format!("{kind} with `{argument}`"),
            Some(false) => format!("{kind} at {argument}"),
            Some(true) => format!("{kind} at {argument}, waited for when lost"),
        }
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Device>, OpenError> {
        (self.open)(&self.argument, opening)
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}
