//! The interface while it is a device: its queues and programs.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_kernel::Interface;
use rheostat_kernel::capability::{Capability, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::config::TapConfig;
use crate::backend::bpf::TapPrograms;
use crate::backend::interface_error::InterfaceError;
use crate::sys::tap::TapQueue;

/// What holds on to the interface.
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) interface: Interface,
    pub(super) programs: TapPrograms,
    /// By lane.
    pub(super) queues: Vec<TapQueue>,
    /// Whether a lane has read, and not yet found the queue empty.
    pub(super) begun: Vec<AtomicBool>,
    /// What the interface had dropped before.
    dropped_before: u64,
}

impl Attachment {
    /// Everything in place, and no packet let through yet.
    pub(super) fn new(config: &TapConfig) -> Result<Attachment, InterfaceError> {
        if config.queues == 0 {
            return Err(InterfaceError::NoQueue);
        }
        let mut programs = TapPrograms::load(&config.programs(), config.fence)?;
        if let Some(placement) = &config.placement {
            // No packet passes yet, so the fence need not be awaited.
            programs.object.table().rewrite(placement)?;
        }
        let mut name = config.interface.clone();
        let mut queues = Vec::new();
        for _ in 0..config.queues {
            let (queue, called) =
                TapQueue::attach(&name).map_err(|source| refusal(&name, source))?;
            name = called;
            queues.push(queue);
        }
        let fails = |doing| {
            let interface = name.clone();
            move |source| InterfaceError::SetUp { doing, interface, source }
        };
        // Programs and offloads are the interface's, whichever queue sets them.
        queues[0].set_filter(programs.gate()).map_err(fails("set the filter"))?;
        queues[0].set_steering(programs.steering()).map_err(fails("set the steering"))?;
        queues[0].set_offload().map_err(fails("set the offloads"))?;
        let interface = Interface::new(&name).map_err(fails("read the state"))?;
        interface.set_up().map_err(fails("change the state"))?;
        let begun = queues.iter().map(|_| AtomicBool::new(false)).collect();
        let mut attachment =
            Attachment { name, interface, programs, queues, begun, dropped_before: 0 };
        attachment.dropped_before = attachment.kernel_drops().unwrap_or(0);
        Ok(attachment)
    }

    /// Whether packets wait for a lane, or for room in its next burst.
    pub(super) fn waits(&self, lane: usize) -> bool {
        // The queue first: the lane states that it has begun before it takes a frame out.
        let mut queue = [PollFd::new(&self.queues[lane], PollFlags::IN)];
        let waits = poll(&mut queue, Some(&Timespec::default())).is_ok()
            && queue[0].revents().contains(PollFlags::IN);
        // Acquire: pairs with the Release in `TapRx::hold`.
        waits || self.begun[lane].load(Ordering::Acquire)
    }

    /// Packets that the kernel could not put into a queue, since the device was opened.
    pub(super) fn kernel_drops(&self) -> Option<u64> {
        let file = format!("/sys/class/net/{}/statistics/tx_dropped", self.name);
        let dropped: u64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
        // What the filter does not take is dropped, too.
        let unwanted = self.dropped_before + self.programs.object.counters().passed;
        Some(dropped.saturating_sub(unwanted))
    }
}

/// The error of attaching a queue to `interface`.
fn refusal(interface: &str, source: io::Error) -> InterfaceError {
    let interface = interface.to_owned();
    match source.raw_os_error() {
        None if source.kind() == io::ErrorKind::InvalidInput => InterfaceError::Name(interface),
        Some(libc::EACCES) => InterfaceError::Closed,
        Some(libc::EPERM) => {
            InterfaceError::Permission(Refusal::new("make tap interfaces", &[Capability::NetAdmin]))
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => InterfaceError::NoTun,
        Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => InterfaceError::Occupied { interface },
        _ => InterfaceError::SetUp { doing: "attach a queue", interface, source },
    }
}
