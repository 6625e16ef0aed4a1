//! From the devices of a configuration to open ones.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rheostat_base::{Clock, ClockSource, DeviceId, QueueId};
use rheostat_capture::Endpoints;
use rheostat_capture::filter::Filter;
use rheostat_control::Config;
use rheostat_control::config::device::live::Access;
use rheostat_control::config::device::{DeviceConfig, DeviceKind, LiveConfig, pcap::Pace, sim};
use rheostat_io::layer::reopen::ReopenableDevice;
use rheostat_io::{
    CaptureSource, CaptureWriter, Device, Drawing, Driver, NullSink, OpenError, Opening, Pacing,
    PacketConfig, PacketDevice, PcapConfig, Peer, Silence, SimNic, Sink, TapConfig, TapDevice,
    WriteError, XdpConfig, XdpDevice, is_standard, open_capture,
};
use rheostat_kernel::InterfaceLink;
use rheostat_packet::Mempool;
use rheostat_steer::{Orientation, Steering};
use rheostat_traffic::{EchoServer, Mix, MixError, Source, Stations};
use thiserror::Error;

use crate::links::WatchedLink;
use crate::{assemble, doctor, output_file};

/// Why a device could not be opened.
#[derive(Debug, Error)]
pub(crate) enum DeviceError {
    #[error(
        "devices `{first}` and `{second}` have one interface: `{interface}` is another name of \
         `{first_interface}`; give each device an interface of its own"
    )]
    SameInterface { first: String, first_interface: String, second: String, interface: String },
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error("there is no such traffic: {0}")]
    Mix(#[from] MixError),
    #[error("device `{device}` is the kernel's sockets, which have no packets: it is for services")]
    Host { device: String },
}

/// What opening devices takes, beside their own settings.
pub(crate) struct Opener<'a> {
    pub(crate) lanes: u16,
    /// Lanes that receive from one queue.
    pub(crate) queue_sharing: u16,
    /// Whether packets leave in the order in which they claim them.
    pub(crate) ordered: bool,
    /// The packets that interfaces take beside those that they are configured to take; without any, these decide.
    pub(crate) endpoints: Endpoints,
    pub(crate) steering: &'a Arc<Steering>,
    pub(crate) pool: &'a Mempool,
    pub(crate) clock: &'a Clock,
    /// What generated traffic is drawn from.
    pub(crate) seed: u64,
}

/// Open devices, and the files that they write, to be closed when the run is over.
#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) devices: Vec<Box<dyn Device>>,
    pub(crate) writers: Vec<CaptureWriter>,
    /// The interfaces of live devices.
    pub(crate) watched: Vec<WatchedLink>,
}

/// Makes sure that no two devices have one interface, by whatever names. Interfaces that are not there are left
/// to the code that opens them.
///
/// # Errors
/// [`DeviceError::SameInterface`] names both.
fn check_distinct(configs: &[DeviceConfig]) -> Result<(), DeviceError> {
    let mut seen: Vec<(u32, &str, String)> = Vec::new();
    for config in configs {
        let Some(interface) = config.facts().interface else { continue };
        let Ok(index) = InterfaceLink::index_of(&interface) else { continue };
        if let Some((_, first, first_interface)) = seen.iter().find(|(other, ..)| *other == index) {
            return Err(DeviceError::SameInterface {
                first: (*first).to_owned(),
                first_interface: first_interface.clone(),
                second: config.name.clone(),
                interface,
            });
        }
        seen.push((index, &config.name, interface));
    }
    Ok(())
}

/// Looks at devices as far as can be seen without opening them, for a run that places packets by `steering` on so many lanes.
///
/// # Errors
/// [`DeviceError`], as of [`Opener::open`].
pub(crate) fn check(
    config: &Config,
    steering: &Arc<Steering>,
    lanes: usize,
) -> Result<(), DeviceError> {
    check_distinct(&config.devices)?;
    let buffers = assemble::pool_config(config, lanes).buffers as usize;
    for device in &config.devices {
        match &device.kind {
            DeviceKind::Sim(_) | DeviceKind::Host => {}
            DeviceKind::Registered(own) => own.0.check(lanes as u16)?,
            DeviceKind::Pcap(pcap) => {
                // What is read from a pipe would be missing in the run.
                let is_file = |path: &&Path| !is_standard(path);
                let input = pcap.input.as_deref().filter(is_file);
                let input = input.filter(|input| !is_pipe(input));
                input.map(CaptureSource::open).transpose()?;
                let output = pcap.output.as_deref().filter(is_file);
                output.map(output_file::check_capture).transpose()?;
            }
            DeviceKind::Live(live) => {
                let interface = live.interface.clone().unwrap_or_default();
                if live.access == Access::Tap && !interface.contains('%') {
                    let wrong =
                        |source| OpenError::Interface { device: device.name.clone(), source };
                    TapDevice::check(&interface).map_err(wrong)?;
                }
                if let Access::AfXdp { copy, .. } = live.access {
                    let xdp = XdpConfig {
                        copy,
                        descriptors: live.ring,
                        claimants: config.workers.queue_sharing,
                        ordered: config.workers.ordered,
                        ..XdpConfig::new(&device.name, interface, lanes as u16, steering.clone())
                    };
                    let wrong =
                        |source| OpenError::Interface { device: device.name.clone(), source };
                    XdpDevice::check(&xdp, buffers).map_err(wrong)?;
                }
            }
        }
    }
    Ok(())
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens a device with its buckets placed so, if anything is said of that.
type Open = dyn Fn(Option<Vec<QueueId>>) -> Result<Box<dyn Device>, OpenError> + Send + Sync;

impl Opener<'_> {
    /// Opens all devices.
    ///
    /// # Errors
    /// [`DeviceError`] names the device that cannot be opened, and why.
    pub(crate) fn open(&self, configs: &[DeviceConfig]) -> Result<Devices, DeviceError> {
        let mut devices = Devices::default();
        for (number, config) in configs.iter().enumerate() {
            let id = DeviceId(number as u8);
            let device = match &config.kind {
                DeviceKind::Sim(_) | DeviceKind::Pcap(_) => {
                    self.open_simulated(id, config, configs.len(), &mut devices.writers)?
                }
                DeviceKind::Live(live) => {
                    let interface = live.interface.clone().unwrap_or_default();
                    let open = self.opening(id, config, live, &interface);
                    open_interface(id, config, open, &mut devices.watched)?
                }
                DeviceKind::Host => {
                    return Err(DeviceError::Host { device: config.name.clone() });
                }
                DeviceKind::Registered(own) => {
                    let (setup, kept) = (own.0.clone(), self.keep(id, config));
                    let open = Box::new(move |placement: Option<Vec<QueueId>>| {
                        setup.open(&kept.opening(placement.as_deref()))
                    });
                    open_interface(id, config, open, &mut devices.watched)?
                }
            };
            devices.devices.push(device);
        }
        Ok(devices)
    }

    /// What opening a device takes, for as long as it may be opened anew.
    fn keep(&self, id: DeviceId, config: &DeviceConfig) -> KeptOpening {
        KeptOpening {
            config: config.clone(),
            id,
            lanes: self.lanes,
            claimants: self.queue_sharing,
            ordered: self.ordered,
            steering: self.steering.clone(),
            pool: self.pool.clone(),
            clock: self.clock.clone(),
            seed: self.seed,
            stamps: Arc::default(),
        }
    }

    fn open_simulated(
        &self,
        id: DeviceId,
        config: &DeviceConfig,
        devices: usize,
        writers: &mut Vec<CaptureWriter>,
    ) -> Result<Box<dyn Device>, DeviceError> {
        let mut nic = self.keep(id, config).opening(None).nic();
        match &config.kind {
            DeviceKind::Sim(sim) => {
                nic.descriptors = sim.queue;
                nic.link_rate = Some(sim.link);
                nic.driver = match sim.driver {
                    sim::Driver::Pumped => Driver::Pumped(Drawing::Ahead(self.shared_clock())),
                    sim::Driver::Threaded => Driver::Threaded(self.shared_clock()),
                };
                let mix = sim.mix(self.seed).map(Mix::new).transpose()?;
                let source: Box<dyn Source> = match (mix, sim.traffic.stations) {
                    (None, _) => Box::new(Silence),
                    // The same mix at every port, of which each takes its part.
                    (Some(mix), Some(stations)) => {
                        Box::new(Stations::new(mix, stations, u32::from(id.0), devices as u32))
                    }
                    (Some(mix), None) => Box::new(mix),
                };
                let sink = |_| -> Box<dyn Sink> { Box::new(NullSink) };
                let Some(delay) = sim.replies else {
                    return Ok(Box::new(SimNic::open(nic, source, sink, self.pool)?));
                };
                let orientation = config.orientation.clone();
                let peer = Peer::new(delay, move |_| Box::new(server(&orientation)));
                Ok(Box::new(SimNic::open_answering(nic, source, sink, self.pool, peer)?))
            }
            DeviceKind::Pcap(pcap) => {
                nic.pacing = match pcap.pace {
                    Pace::Max => Pacing::Lossless,
                    Pace::Times(speed) => Pacing::Replay { speed },
                };
                let create = |path: &Path| match is_standard(path) {
                    true => CaptureWriter::standard_output(),
                    false => CaptureWriter::create(path),
                };
                let output = pcap.output.as_deref().map(create).transpose()?;
                writers.extend(output.clone());
                let input = pcap.input.clone();
                Ok(Box::new(open_capture(PcapConfig { input, output, nic }, self.pool)?))
            }
            DeviceKind::Live(_) | DeviceKind::Host | DeviceKind::Registered(_) => {
                unreachable!("devices of these kinds are opened elsewhere")
            }
        }
    }

    fn shared_clock(&self) -> Arc<dyn ClockSource> {
        Arc::new(self.clock.clone())
    }

    /// What opens a live device, now and whenever its interface is back.
    fn opening(
        &self,
        id: DeviceId,
        config: &DeviceConfig,
        live: &LiveConfig,
        interface: &str,
    ) -> Box<Open> {
        let (pool, device) = (self.pool.clone(), config.name.clone());
        let filter = Filter { endpoints: self.endpoints.clone(), ..live.filter.clone() };
        match live.access {
            Access::AfXdp { attach, copy, busy_poll } => {
                let xdp = XdpConfig {
                    device: id,
                    hashing: config.hashing,
                    filter,
                    mode: attach,
                    copy,
                    fence: live.fence,
                    busy_poll,
                    descriptors: live.ring,
                    claimants: self.queue_sharing,
                    ordered: self.ordered,
                    ..XdpConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                Box::new(move |placement| {
                    match XdpDevice::open(XdpConfig { placement, ..xdp.clone() }, &pool) {
                        Ok(opened) => Ok(Box::new(opened)),
                        Err(source) => Err(OpenError::Interface { device: device.clone(), source }),
                    }
                })
            }
            Access::AfPacket { exclusive } => {
                let packet = PacketConfig {
                    device: id,
                    hashing: config.hashing,
                    filter,
                    exclusive,
                    fence: live.fence,
                    ring: live.ring,
                    ..PacketConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                Box::new(move |placement| {
                    let config = PacketConfig { placement, ..packet.clone() };
                    match PacketDevice::open(config, &pool) {
                        Ok(opened) => Ok(Box::new(opened)),
                        Err(source) => Err(OpenError::Interface { device: device.clone(), source }),
                    }
                })
            }
            Access::Tap => {
                let tap = TapConfig {
                    device: id,
                    hashing: config.hashing,
                    filter,
                    fence: live.fence,
                    ..TapConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                Box::new(move |placement| {
                    match TapDevice::open(TapConfig { placement, ..tap.clone() }, &pool) {
                        Ok(opened) => Ok(Box::new(opened)),
                        Err(source) => Err(OpenError::Interface { device: device.clone(), source }),
                    }
                })
            }
        }
    }
}

/// Opens a device, as one that can be opened anew if it waits for its interface, and adds its interface to those to be followed.
fn open_interface(
    id: DeviceId,
    config: &DeviceConfig,
    open: Box<Open>,
    watched: &mut Vec<WatchedLink>,
) -> Result<Box<dyn Device>, DeviceError> {
    let facts = config.facts();
    let (device, reopener): (Box<dyn Device>, _) = match facts.waits_for_interface {
        false => (open(None)?, None),
        true => {
            let device = ReopenableDevice::open(open)?;
            let reopener = device.reopener();
            (Box::new(device), Some(reopener))
        }
    };
    let Some(interface) = facts.interface else { return Ok(device) };
    if facts.needs_whole_segments {
        warn_of_offloads(&config.name, &interface);
    }
    // The kernel has chosen the number in a name with `%d`; such an interface is this process's own.
    if !interface.contains('%') {
        let monitor = device.monitor();
        watched.push(WatchedLink { device: config.name.clone(), id, interface, monitor, reopener });
    }
    Ok(device)
}

/// What opening a device takes.
struct KeptOpening {
    config: DeviceConfig,
    id: DeviceId,
    lanes: u16,
    claimants: u16,
    ordered: bool,
    steering: Arc<Steering>,
    pool: Mempool,
    clock: Clock,
    seed: u64,
    stamps: Arc<AtomicU32>,
}

impl KeptOpening {
    fn opening<'a>(&'a self, placement: Option<&'a [QueueId]>) -> Opening<'a> {
        Opening {
            name: &self.config.name,
            id: self.id,
            lanes: self.lanes,
            claimants: self.claimants,
            ordered: self.ordered,
            hashing: self.config.hashing,
            orientation: &self.config.orientation,
            steering: &self.steering,
            pool: &self.pool,
            clock: &self.clock,
            seed: self.seed,
            placement,
            stamps: &self.stamps,
        }
    }
}

/// The server behind a device: on a link that carries both sides, it has the addresses that are not inside.
fn server(orientation: &Orientation) -> EchoServer {
    match orientation {
        Orientation::Inside | Orientation::Outside => EchoServer::new(|_| true),
        Orientation::ByPrefix(inside) => {
            let inside = inside.clone();
            EchoServer::new(move |address| !inside.contains(address))
        }
    }
}

/// Warns of offloads that lose packets of TCP on an interface that is used by AF_XDP.
fn warn_of_offloads(device: &str, interface: &str) {
    for finding in doctor::offloads(interface) {
        let (found, means) = (finding.found, finding.means.unwrap_or_default());
        let fix = finding.fix.unwrap_or_default();
        tracing::warn!(target: "links", "device `{device}`: interface `{interface}`: {found}: {means}; `{fix}`");
    }
}
