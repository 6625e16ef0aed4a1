//! From the devices of a configuration to open ones.

use std::sync::Arc;

use rheostat_base::{Clock, ClockSource, DeviceId};
use rheostat_control::config::device::live::Access;
use rheostat_control::config::device::{DeviceConfig, DeviceKind, LiveConfig, pcap::Pace, sim};
use rheostat_io::{
    CaptureWriter, Device, Driver, NullSink, OpenError, Pacing, PacketConfig, PacketDevice,
    PcapConfig, PcapDevice, SimConfig, SimNic, TapConfig, TapDevice, XdpConfig, XdpDevice,
};
use rheostat_packet::Mempool;
use rheostat_steer::Steering;
use rheostat_traffic::{Mix, Source, Stations};

use crate::failure::Failure;

/// Packets of full size that a block of a packet socket's ring holds, about.
pub(crate) const FRAMES_PER_BLOCK: u32 = 128;

/// What opening devices takes, beside their own settings.
pub(crate) struct Opener<'a> {
    pub(crate) lanes: u16,
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
}

impl Opener<'_> {
    /// Opens all devices.
    ///
    /// # Errors
    /// [`Failure`] says which device cannot be opened, and why.
    pub(crate) fn open(&self, configs: &[DeviceConfig]) -> Result<Devices, Failure> {
        let mut devices = Devices::default();
        for (number, config) in configs.iter().enumerate() {
            let id = DeviceId(number as u8);
            let device = match &config.kind {
                DeviceKind::Sim(_) | DeviceKind::Pcap(_) => {
                    self.open_simulated(id, config, configs.len(), &mut devices.writers)?
                }
                DeviceKind::Live(live) => self.open_live(id, config, live)?,
            };
            devices.devices.push(device);
        }
        Ok(devices)
    }

    fn open_simulated(
        &self,
        id: DeviceId,
        config: &DeviceConfig,
        devices: usize,
        writers: &mut Vec<CaptureWriter>,
    ) -> Result<Box<dyn Device>, Failure> {
        let mut nic = SimConfig::new(&config.name, self.lanes, self.steering.clone());
        nic.device = id;
        nic.hash = config.hashing;
        match &config.kind {
            DeviceKind::Sim(sim) => {
                nic.descriptors = sim.queue;
                nic.link_rate = Some(sim.link);
                nic.driver = match sim.driver {
                    sim::Driver::Pumped => Driver::Pumped,
                    sim::Driver::Threaded => {
                        let clock: Arc<dyn ClockSource> = Arc::new(self.clock.clone());
                        Driver::Threaded(clock)
                    }
                };
                let mix = Mix::new(sim.mix(self.seed))?;
                let mix: Box<dyn Source> = match sim.traffic.stations {
                    // The same mix at every port, of which each takes its part.
                    Some(stations) => {
                        Box::new(Stations::new(mix, stations, u32::from(id.0), devices as u32))
                    }
                    None => Box::new(mix),
                };
                Ok(Box::new(SimNic::open(nic, mix, |_| Box::new(NullSink), self.pool)?))
            }
            DeviceKind::Pcap(pcap) => {
                nic.pacing = match pcap.pace {
                    Pace::Max => Pacing::Lossless,
                    Pace::Times(speed) => Pacing::Replay { speed },
                };
                let output = pcap.output.as_deref().map(CaptureWriter::create).transpose()?;
                writers.extend(output.clone());
                let input = pcap.input.clone();
                Ok(Box::new(PcapDevice::open(PcapConfig { input, output, nic }, self.pool)?))
            }
            DeviceKind::Live(_) => unreachable!("live devices are opened elsewhere"),
        }
    }

    fn open_live(
        &self,
        id: DeviceId,
        config: &DeviceConfig,
        live: &LiveConfig,
    ) -> Result<Box<dyn Device>, Failure> {
        let interface = live.interface.as_deref().unwrap_or_default();
        let device = || config.name.clone();
        match live.access {
            Access::AfXdp { attach, copy } => {
                let xdp = XdpConfig {
                    device: id,
                    hashing: config.hashing,
                    filter: live.filter.clone(),
                    mode: attach,
                    copy,
                    fence: live.fence,
                    descriptors: live.ring,
                    ..XdpConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                let opened = XdpDevice::open(xdp, self.pool)
                    .map_err(|source| OpenError::Xdp { device: device(), source })?;
                Ok(Box::new(opened))
            }
            Access::AfPacket { exclusive } => {
                let packet = PacketConfig {
                    device: id,
                    hashing: config.hashing,
                    filter: live.filter.clone(),
                    exclusive,
                    fence: live.fence,
                    blocks: (live.ring / FRAMES_PER_BLOCK).max(2),
                    ..PacketConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                let opened = PacketDevice::open(packet, self.pool)
                    .map_err(|source| OpenError::Packet { device: device(), source })?;
                Ok(Box::new(opened))
            }
            Access::Tap => {
                let tap = TapConfig {
                    device: id,
                    hashing: config.hashing,
                    filter: live.filter.clone(),
                    fence: live.fence,
                    ..TapConfig::new(&config.name, interface, self.lanes, self.steering.clone())
                };
                let opened = TapDevice::open(tap, self.pool)
                    .map_err(|source| OpenError::Tap { device: device(), source })?;
                Ok(Box::new(opened))
            }
        }
    }
}
