//! An interface as a device.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_packet::Mempool;
use rheostat_steer::IndirectionTable;
use rustix::event::epoll;

use super::attachment::Attachment;
use super::config::XdpConfig;
use super::monitor::XdpMonitor;
use super::open::{fit, open};
use super::receive::XdpRx;
use super::receiving_lane::ReceivingLane;
use super::shared_receive::{SharedRing, SharedXdpRx};
use super::transmit::XdpTx;
use crate::backend::interface_error::InterfaceError;
use crate::device::{Device, DeviceMonitor, QueuePair, RxQueue};
use crate::sys::xdp_socket::XdpSocket;

/// A network interface of the machine, used by AF_XDP.
///
/// When it and its queues are dropped, the program is off the interface, the sockets are closed, and
/// all buffers are home. The same happens, but for the buffers, when the process is killed.
pub struct XdpDevice {
    name: String,
    id: DeviceId,
    table: Option<Arc<dyn IndirectionTable>>,
    monitor: Arc<XdpMonitor>,
    // Before the attachment, as in the queues themselves.
    queues: Vec<QueuePair>,
    attachment: Arc<Attachment>,
}

impl XdpDevice {
    /// Whether an interface and a pool of so many buffers fit a configuration, as far as can be seen without opening them.
    ///
    /// # Errors
    /// As [`XdpDevice::open`].
    pub fn check(config: &XdpConfig, buffers: usize) -> Result<(), InterfaceError> {
        fit(config, buffers).map(drop)
    }

    /// Opens an interface. The kernel works in the memory of `pool`, whose layout must allow it
    /// ([`rheostat_packet::MempoolConfig::umem`]); packets cross between devices of one pool without
    /// being copied.
    ///
    /// # Errors
    /// [`InterfaceError`], which states what to do about it.
    pub fn open(config: XdpConfig, pool: &Mempool) -> Result<XdpDevice, InterfaceError> {
        let (attachment, rings) = open(&config, pool)?;
        let attachment = Arc::new(attachment);
        let claimants = attachment.claimants;
        let mut shared: Arc<[SharedRing]> = Arc::new([]);
        let mut queues = Vec::new();
        for (number, rings) in rings.into_iter().enumerate() {
            let any = watch(attachment.receive_sockets(number));
            let any = any.map_err(|error| InterfaceError::SetUp {
                interface: config.interface.clone(),
                doing: "watch sockets",
                source: error.into(),
            })?;
            let (device, attachment) = (config.device, attachment.clone());
            let lane = ReceivingLane {
                any,
                number,
                device,
                idle_polls: 0,
                attachment: attachment.clone(),
            };
            let rx: Box<dyn RxQueue> = if claimants == 1 {
                Box::new(XdpRx::new(rings.receive, lane))
            } else {
                if number % claimants == 0 {
                    shared = rings.receive.into_iter().map(SharedRing::new).collect();
                }
                Box::new(SharedXdpRx::new(shared.clone(), (number, claimants), lane))
            };
            let tx = XdpTx::new(rings.transmit, number, attachment);
            queues.push(QueuePair { rx, tx: Box::new(tx) });
        }
        Ok(XdpDevice {
            monitor: Arc::new(XdpMonitor::new(config.interface, &attachment)),
            name: config.name,
            id: config.device,
            table: attachment.table(),
            queues,
            attachment,
        })
    }
}

/// A descriptor that polls readable when any of the sockets does; none for a single socket.
fn watch(sockets: &[XdpSocket]) -> Result<Option<OwnedFd>, rustix::io::Errno> {
    if sockets.len() < 2 {
        return Ok(None);
    }
    let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, socket) in (0..).zip(sockets) {
        let data = epoll::EventData::new_u64(number);
        epoll::add(&any, socket.as_fd(), data, epoll::EventFlags::IN)?;
    }
    Ok(Some(any))
}

impl Device for XdpDevice {
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
        self.table.clone()
    }

    /// A hardware queue has the sockets of one owner, an interface one program.
    fn is_exclusive(&self) -> bool {
        true
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl Drop for XdpDevice {
    fn drop(&mut self) {
        self.attachment.stop();
    }
}
