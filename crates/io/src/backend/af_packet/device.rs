//! An interface as a device.

use std::sync::{Arc, Mutex};

use rheostat_base::DeviceId;
use rheostat_kernel::Interface;
use rheostat_kernel::capability::Capability;
use rheostat_packet::Mempool;
use rheostat_steer::IndirectionTable;

use super::config::PacketConfig;
use super::monitor::{Counters, PacketMonitor};
use super::receive::PacketRx;
use super::ring::{RingMemory, SlotRing};
use super::transmit::PacketTx;
use crate::backend::bpf::{PacketPrograms, ProgramCounters};
use crate::backend::intake::Intake;
use crate::backend::interface_error::InterfaceError;
use crate::device::{Device, DeviceMonitor, QueuePair};
use crate::lock::lock;
use crate::sys::interface_lock::InterfaceLock;
use crate::sys::packet_socket::PacketSocket;

/// An interface, from which packets are taken and to which they are sent by packet sockets.
///
/// When it and its queues are dropped, the sockets are closed, and the kernel gets all packets again.
pub struct PacketDevice {
    name: String,
    id: DeviceId,
    queues: Vec<QueuePair>,
    monitor: Arc<PacketMonitor>,
    attachment: Arc<Attachment>,
}

/// What holds on to the interface.
pub(super) struct Attachment {
    pub(super) interface: Interface,
    pub(super) interface_index: u32,
    pub(super) programs: PacketPrograms,
    /// By lane; the receiving ones.
    pub(super) sockets: Vec<PacketSocket>,
    pub(super) rings: Vec<Arc<RingMemory>>,
    pub(super) exclusive: bool,
    counters: Arc<Counters>,
    /// Present until the interface is let go.
    lock: Mutex<Option<InterfaceLock>>,
}

impl PacketDevice {
    /// Opens the interface. Packets are copied into buffers of the lanes' pool.
    ///
    /// # Errors
    /// [`InterfaceError`], which states what to do about it.
    pub fn open(config: PacketConfig, _pool: &Mempool) -> Result<PacketDevice, InterfaceError> {
        let attachment = Arc::new(Attachment::new(&config)?);
        let counters = attachment.counters.clone();
        let stamps = config.stamps.clone();
        let mut queues = Vec::new();
        for lane in 0..usize::from(config.queues) {
            let arrivals = counters.lanes.arrivals[lane].clone();
            let intake = Intake::new(config.device, Arc::clone(&stamps), arrivals);
            let ring = SlotRing::new(attachment.rings[lane].clone());
            let socket = transmitting(&config.interface, attachment.interface_index)?;
            queues.push(QueuePair {
                rx: Box::new(PacketRx {
                    ring,
                    intake,
                    lane,
                    idle: 0,
                    attachment: attachment.clone(),
                }),
                tx: Box::new(PacketTx::new(socket, counters.lanes.sent[lane].clone())),
            });
        }
        let monitor = Arc::new(PacketMonitor {
            interface: config.interface,
            counters,
            attachment: Arc::downgrade(&attachment),
            stopped: Mutex::new(None),
        });
        attachment.programs.object.open();
        Ok(PacketDevice { name: config.name, id: config.device, queues, monitor, attachment })
    }

    /// What the programs in the kernel have counted so far: by bucket, and what was left to the kernel.
    pub fn program_counters(&self) -> ProgramCounters {
        self.attachment.programs.object.counters()
    }
}

impl Attachment {
    /// Everything in place, and no packet let through yet.
    fn new(config: &PacketConfig) -> Result<Attachment, InterfaceError> {
        let PacketConfig { queues, exclusive, ring: slots, .. } = *config;
        if queues == 0 {
            return Err(InterfaceError::NoQueue);
        }
        let name = config.interface.as_str();
        let no_interface =
            |source| InterfaceError::NoInterface { interface: name.to_owned(), source };
        let fails = |doing| InterfaceError::set_up(doing, name, Capability::NetRaw);
        let interface = Interface::new(name).map_err(no_interface)?;
        let interface_index = interface.index().map_err(no_interface)?;
        let lock = InterfaceLock::claim(interface_index).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                InterfaceError::InUse { interface: name.to_owned(), index: interface_index }
            }
            _ => fails("claim the interface")(error),
        })?;
        let mut programs = PacketPrograms::load(&config.programs(), config.fence)?;
        if let Some(placement) = &config.placement {
            // No packet passes yet, so the fence need not be awaited.
            programs.object.table().rewrite(placement)?;
        }
        let mut sockets = Vec::new();
        let mut rings = Vec::new();
        let mut group = None;
        for _ in 0..queues {
            let socket = PacketSocket::new().map_err(fails("open packet sockets"))?;
            let ring = RingMemory::new(&socket, slots)
                .map_err(|source| InterfaceError::Ring { slots, source })?;
            // From before it is bound: until the group is complete, every socket would get everything.
            programs.guard(rustix::fd::AsFd::as_fd(&socket))?;
            socket.ignore_outgoing().map_err(fails("ignore outgoing packets"))?;
            socket.bind(interface_index, true).map_err(fails("bind a packet socket"))?;
            let joined = socket.join_group(group).map_err(fails("join a fanout group"))?;
            if group.replace(joined).is_none() {
                socket
                    .set_group_program(programs.fanout())
                    .map_err(fails("give a fanout group its program"))?;
                socket
                    .accept_all_addresses(interface_index)
                    .map_err(fails("make the interface promiscuous"))?;
            }
            sockets.push(socket);
            rings.push(Arc::new(ring));
        }
        if exclusive {
            programs.exclude(name, interface_index)?;
        }
        let counters = Arc::new(Counters::new(queues.into()));
        Ok(Attachment {
            interface,
            interface_index,
            programs,
            sockets,
            rings,
            exclusive,
            counters,
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Gives up the claim to the interface.
    pub(super) fn unlock(&self) {
        lock(&self.lock).take();
    }

    /// Adds up what the kernel has dropped since it was last asked.
    pub(super) fn note_drops(&self) {
        let mut queue_full = self.counters.queue_full();
        for (sum, socket) in queue_full.iter_mut().zip(&self.sockets) {
            *sum += socket.drops().map_or(0, u64::from);
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.note_drops();
    }
}

/// A socket that only sends.
fn transmitting(name: &str, interface: u32) -> Result<PacketSocket, InterfaceError> {
    let fails = |doing| InterfaceError::set_up(doing, name, Capability::NetRaw);
    let socket = PacketSocket::new().map_err(fails("open packet sockets"))?;
    socket.bypass_queueing().map_err(fails("bypass queueing"))?;
    socket.bind(interface, false).map_err(fails("bind a packet socket"))?;
    Ok(socket)
}

impl Device for PacketDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        Some(self.attachment.programs.object.table())
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}
