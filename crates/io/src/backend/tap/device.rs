//! A tap interface as a device.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rheostat_base::DeviceId;
use rheostat_packet::Mempool;
use rheostat_steer::IndirectionTable;

use super::attachment::Attachment;
use super::config::TapConfig;
use super::monitor::{State, TapMonitor};
use super::receive::TapRx;
use super::transmit::TapTx;
use crate::backend::bpf::ProgramCounters;
use crate::backend::intake::Intake;
use crate::backend::interface_error::InterfaceError;
use crate::backend::socket_counters::SocketCounters;
use crate::device::{Device, DeviceMonitor, QueuePair};

/// A tap interface. An interface that was made for the device vanishes when it and its queues are
/// dropped.
pub struct TapDevice {
    name: String,
    id: DeviceId,
    queues: Vec<QueuePair>,
    monitor: Arc<TapMonitor>,
    attachment: Arc<Attachment>,
}

impl TapDevice {
    /// Whether an interface of this name can be a tap, as far as can be seen without making it.
    ///
    /// # Errors
    /// As [`TapDevice::open`].
    pub fn check(interface: &str) -> Result<(), InterfaceError> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(InterfaceError::NoTun);
        }
        let folder = Path::new("/sys/class/net").join(interface);
        match is_suitable(fs::read_to_string(folder.join("tun_flags")).ok().as_deref()) {
            false if folder.exists() => {
                Err(InterfaceError::Occupied { interface: interface.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Makes the interface, or attaches to the one there is, and sets it up. Packets are copied into
    /// buffers of the lanes' pool.
    ///
    /// # Errors
    /// [`InterfaceError`], which states what to do about it.
    pub fn open(config: TapConfig, _pool: &Mempool) -> Result<TapDevice, InterfaceError> {
        let attachment = Arc::new(Attachment::new(&config)?);
        let counters = Arc::new(SocketCounters::new(config.queues.into()));
        let stamps = config.stamps.clone();
        let mut queues = Vec::new();
        for lane in 0..usize::from(config.queues) {
            let arrivals = counters.arrivals[lane].clone();
            let intake = Intake::new(config.device, Arc::clone(&stamps), arrivals);
            let sent = counters.sent[lane].clone();
            queues.push(QueuePair {
                rx: Box::new(TapRx::new(intake, lane, attachment.clone())),
                tx: Box::new(TapTx::new(lane, sent, attachment.clone())),
            });
        }
        let monitor = Arc::new(TapMonitor {
            interface: attachment.name.clone(),
            counters,
            attachment: Arc::downgrade(&attachment),
            state: Mutex::new(State::default()),
        });
        attachment.programs.object.open();
        Ok(TapDevice { name: config.name, id: config.device, queues, monitor, attachment })
    }

    /// What the interface is called.
    pub fn interface(&self) -> &str {
        &self.attachment.name
    }

    /// What the programs in the kernel have counted so far: by bucket, and what the filter did not take.
    pub fn program_counters(&self) -> ProgramCounters {
        self.attachment.programs.object.counters()
    }
}

/// Whether flags that the kernel shows of an interface, such as `0x5102`, are those of a tap with several queues and a virtio
/// header.
fn is_suitable(flags: Option<&str>) -> bool {
    let wanted = libc::IFF_TAP | libc::IFF_MULTI_QUEUE | libc::IFF_VNET_HDR;
    let flags = flags.and_then(|flags| flags.trim().strip_prefix("0x"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags, 16).ok());
    flags.is_some_and(|flags| flags & wanted == wanted)
}

impl Device for TapDevice {
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

    /// The kernel looks the queue up before a frame waits in the interface's queueing discipline, and nothing
    /// shows when it has left that.
    fn may_place_late(&self) -> bool {
        true
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}
