//! The XDP program: receive-side scaling in software, on any interface.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{MapData, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp, XdpMode, loaded_programs};
use rheostat_kernel::xdp_attachment;
use rheostat_packet::HashKind;
use rheostat_steer::{Fence, IndirectionTable};

use super::counters::ProgramCounters;
use super::error::{BpfError, os_error, whole};
use super::fence::FenceMode;
use super::object::{Object, take};
use super::program_config::ProgramConfig;

/// Receive queues of an interface that can have sockets.
pub const HARDWARE_QUEUES: u32 = 128;

/// Bytes that the program writes in front of each packet.
pub const METADATA: usize = 8;

/// States that metadata is ours.
const MAGIC: u8 = 0x72;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/xdp.o");
const NAME: &str = "rheostat_xdp";

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AttachMode {
    /// In the driver if it can, else generic.
    #[default]
    Auto,
    /// In the driver, before the kernel has made a buffer of its own.
    Native,
    /// Behind the driver, on any interface.
    Generic,
}

/// What the program states about a packet, in the [`METADATA`] bytes in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHash {
    /// The hash.
    pub hash: u32,
    /// What it covers.
    pub kind: HashKind,
    /// The bucket it names.
    pub bucket: u16,
}

impl PacketHash {
    /// Reads metadata; `None` if it is not this program's. Only to be asked while
    /// [`XdpProgram::reports_hashes`]: what lies in front of a packet without metadata may be left over
    /// from another packet.
    #[inline]
    pub fn read(metadata: &[u8; METADATA]) -> Option<PacketHash> {
        let [a, b, c, d, kind, magic, low, high] = *metadata;
        let kind = match kind {
            0 => HashKind::None,
            1 => HashKind::Addresses,
            2 => HashKind::Ports,
            _ => return None,
        };
        let hash = u32::from_ne_bytes([a, b, c, d]);
        let bucket = u16::from_ne_bytes([low, high]);
        (magic == MAGIC).then_some(PacketHash { hash, kind, bucket })
    }
}

/// The program, in the kernel until this is dropped.
pub struct XdpProgram {
    object: Object,
    sockets: XskMap<MapData>,
    queues: u16,
    /// The interface in front of which the program was put, and the program's number.
    attached: Option<(u32, u32)>,
}

impl XdpProgram {
    /// Loads the program, with strict fences.
    ///
    /// # Errors
    /// [`BpfError`], which states what to do about it.
    pub fn load(config: &ProgramConfig) -> Result<XdpProgram, BpfError> {
        XdpProgram::load_fenced(config, FenceMode::Strict)
    }

    /// Loads the program.
    ///
    /// # Errors
    /// As [`XdpProgram::load`].
    pub fn load_fenced(config: &ProgramConfig, fence: FenceMode) -> Result<XdpProgram, BpfError> {
        const WHAT: &str = "the XDP program";
        let sizes = [("sockets", HARDWARE_QUEUES * u32::from(config.queues))];
        let mut object =
            Object::load(WHAT, OBJECT, &sizes, config, fence, |ebpf| program(ebpf).load())?;
        let sockets = take(&mut object.ebpf, WHAT, "sockets")?;
        Ok(XdpProgram { object, sockets, queues: config.queues, attached: None })
    }

    /// Lets the packets of `lane` that arrive on `hardware_queue` go to `socket`, which must be bound to
    /// that queue: packets for a socket of another queue are lost. Closing the socket undoes this.
    ///
    /// # Errors
    /// [`BpfError::Register`] when there is no such queue or lane, or it is no socket of AF_XDP.
    pub fn register(
        &mut self,
        hardware_queue: u32,
        lane: u16,
        socket: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        let refuse = |reason| BpfError::Register { hardware_queue, lane, reason };
        if hardware_queue >= HARDWARE_QUEUES || lane >= self.queues {
            let most = HARDWARE_QUEUES;
            return Err(refuse(format!("there are {most} queues of {} lanes", self.queues)));
        }
        let index = hardware_queue * u32::from(self.queues) + u32::from(lane);
        self.sockets.set(index, socket.as_raw_fd(), 0).map_err(|error| refuse(whole(&error)))
    }

    /// Puts the program in front of an interface's packets, and returns how. The kernel takes it away when
    /// the process ends, however it ends.
    ///
    /// # Errors
    /// [`BpfError`], which states what to do about it.
    pub fn attach(&mut self, interface: u32, mode: AttachMode) -> Result<AttachMode, BpfError> {
        let native = match mode {
            AttachMode::Generic => None,
            _ => Some(self.attach_as(interface, XdpMode::Driver, "native")),
        };
        match native {
            Some(Ok(())) => Ok(AttachMode::Native),
            Some(Err(error)) if mode == AttachMode::Native => Err(error),
            // What is wrong in this mode only.
            None | Some(Err(BpfError::Attach { .. })) => {
                self.attach_as(interface, XdpMode::Skb, "generic").map(|()| AttachMode::Generic)
            }
            Some(Err(error)) => Err(error),
        }
    }

    fn attach_as(
        &mut self,
        interface: u32,
        flags: XdpMode,
        mode: &'static str,
    ) -> Result<(), BpfError> {
        let mut attach = || program(&mut self.object.ebpf).attach_to_if_index(interface, flags);
        let outcome = match attach() {
            Err(error) if is_occupied(&error) && remove_stale(interface, flags) => attach(),
            outcome => outcome,
        };
        let Err(error) = outcome else {
            let number = program(&mut self.object.ebpf).info().map(|info| info.id());
            self.attached = number.ok().map(|number| (interface, number));
            return Ok(());
        };
        Err(match is_occupied(&error) {
            true => BpfError::Occupied { interface },
            false => BpfError::attach(&error, interface, mode),
        })
    }

    /// Whether the program was attached, and no longer is, or not alone: another process has detached its link, or replaced it.
    /// An interface that cannot be asked is none of that. Takes a request to the kernel; needs no privileges.
    pub fn is_detached(&self) -> bool {
        self.attached.is_some_and(|(interface, program)| {
            xdp_attachment::attached(interface).is_ok_and(|found| found != Some(program))
        })
    }

    /// The indirection table.
    pub fn table(&self) -> Arc<dyn IndirectionTable> {
        self.object.table.clone()
    }

    /// What the program has counted so far.
    pub fn counters(&self) -> ProgramCounters {
        self.object.meter.read()
    }

    /// Whether every packet so far came with its [`PacketHash`]. Some drivers have no room for it; their
    /// packets must be hashed again. To be asked after a packet was taken from its ring.
    pub fn reports_hashes(&self) -> bool {
        !self.object.is_without_metadata()
    }

    /// Runs the program on an Ethernet frame, in the kernel but on no interface: what it states about a packet
    /// that it takes, `None` for one that it leaves to the kernel.
    ///
    /// # Errors
    /// [`BpfError::Load`] when the kernel does not run it, because the frame is too short, say.
    pub fn probe(&mut self, frame: &[u8]) -> Result<Option<PacketHash>, BpfError> {
        let mut out = vec![0; METADATA + frame.len()];
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..TestRunOptions::default()
        };
        let outcome = program(&mut self.object.ebpf).test_run(options);
        let outcome = outcome.map_err(|e| BpfError::load("a trial of the XDP program", &e))?;
        // Of a packet that was taken, what is in front of it comes out, too.
        let is_taken = outcome.data_size_out as usize == out.len();
        Ok(out.first_chunk().filter(|_| is_taken).and_then(PacketHash::read))
    }

    /// Leaves every packet to the kernel from now on, for good. Once the fence has passed, no socket gets
    /// a packet any more.
    pub fn stop(&self) -> Fence {
        self.object.stop()
    }
}

fn program(ebpf: &mut Ebpf) -> &mut Xdp {
    let program = ebpf.program_mut(NAME).expect("the object has this program");
    program.try_into().expect("it is an XDP program")
}

fn is_occupied(error: &ProgramError) -> bool {
    matches!(os_error(error), Some(libc::EBUSY | libc::EEXIST))
}

/// Takes a program of ours away from an interface that no process holds any more: kernels without links
/// leave it there. `false` if there is none such.
fn remove_stale(interface: u32, mode: XdpMode) -> bool {
    let Ok(Some(attached)) = xdp_attachment::attached(interface) else { return false };
    let is_ours = loaded_programs()
        .flatten()
        .any(|program| program.id() == attached && program.name_as_str() == Some(NAME));
    // A program that a link holds, as another process of ours does, stays.
    is_ours && xdp_attachment::detach(interface, mode == XdpMode::Skb).is_ok()
}
