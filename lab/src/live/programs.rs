//! The BPF programs of `traffic.bpf.c`, one object for each use, so that counts are apart.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::error::LiveError;
use crate::testbed::{Namespace, TestbedError};
use aya::maps::xdp::{DevMap, XskMap};
use aya::maps::{Array, PerCpuArray};
use aya::programs::{
    ProgramError, SchedClassifier, TcAttachType, TestRun, TestRunAttrs, TestRunOptions, Xdp,
    XdpMode,
};
use aya::{Ebpf, EbpfLoader};

/// Compiled from `lab/bpf/traffic.bpf.c` by `crates/io/bpf/build`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/traffic.o");

/// Counts and drops what reaches an interface, as long as it lives.
#[derive(Debug)]
pub(super) struct Sink {
    object: Ebpf,
}

impl Sink {
    const TASK: &str = "counts and drops";

    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Sink, LiveError> {
        let mut object = load(0, Self::TASK)?;
        attach(&mut object, "sink", Self::TASK, namespace, interface)?;
        Ok(Sink { object })
    }

    /// The same where the kernel's own packets arrive.
    pub(super) fn attach_host(namespace: &Namespace, interface: &str) -> Result<Sink, LiveError> {
        let failed = |error| LiveError::program(Self::TASK, error);
        let mut object = load(0, Self::TASK)?;
        let program = object.program_mut("host").expect("the object has it");
        let program: &mut SchedClassifier = program.try_into().expect("it is a classifier");
        program.load().map_err(failed)?;
        namespace.enter(|| program.attach(interface, TcAttachType::Ingress))?.map_err(failed)?;
        Ok(Sink { object })
    }

    /// Packets so far.
    pub(super) fn count(&self) -> Result<u64, LiveError> {
        let failed = |error| LiveError::program(Self::TASK, error);
        let map = self.object.map("arrived").expect("the object has it");
        let arrived: PerCpuArray<_, u64> = map.try_into().map_err(failed)?;
        Ok(arrived.get(&0, 0).map_err(failed)?.iter().sum())
    }
}

/// Redirects what reaches an interface to another one, as long as it lives.
#[derive(Debug)]
pub(super) struct Redirect {
    _object: Ebpf,
}

impl Redirect {
    const TASK: &str = "redirects";

    pub(super) fn attach(
        namespace: &Namespace,
        from: &str,
        to: &str,
    ) -> Result<Redirect, LiveError> {
        let failed = |error| LiveError::program(Self::TASK, error);
        let mut object = load(0, Self::TASK)?;
        let target = index(namespace, to)?;
        let map = object.map_mut("way").expect("the object has it");
        let mut way: DevMap<_> =
            map.try_into().map_err(|error| LiveError::program(Self::TASK, error))?;
        // The number is looked up where the calling thread is.
        namespace.enter(|| way.set(0, target, None, 0))?.map_err(failed)?;
        attach(&mut object, "forward", Self::TASK, namespace, from)?;
        Ok(Redirect { _object: object })
    }
}

/// Gives what reaches an interface to an AF_XDP socket, as long as it lives.
#[derive(Debug)]
pub(super) struct Receive {
    _object: Ebpf,
}

impl Receive {
    const TASK: &str = "leads packets to a socket";

    pub(super) fn attach(
        namespace: &Namespace,
        interface: &str,
        socket: BorrowedFd<'_>,
    ) -> Result<Receive, LiveError> {
        let failed = |error| LiveError::program(Self::TASK, error);
        let mut object = load(0, Self::TASK)?;
        let map = object.map_mut("socket").expect("the object has it");
        let mut sockets: XskMap<_> = map.try_into().map_err(failed)?;
        sockets.set(0, socket.as_raw_fd(), 0).map_err(failed)?;
        attach(&mut object, "receive", Self::TASK, namespace, interface)?;
        Ok(Receive { _object: object })
    }
}

/// Sends frames out of an interface, each of the next flow.
#[derive(Debug)]
pub(super) struct ProgramSource {
    object: Ebpf,
    context: [u8; 24],
    frame: Vec<u8>,
    /// Frames sent so far, as `made` in `traffic.bpf.c` counts them.
    sent: u64,
}

impl ProgramSource {
    const TASK: &str = "makes flows";
    /// Frames that the kernel handles in one go, its own default.
    const BATCH: u32 = 64;

    /// `flows` is a power of two; `frame` the frame that is repeated, as `generate` in
    /// `traffic.bpf.c` wants it.
    pub(super) fn new(
        namespace: &Namespace,
        interface: &str,
        flows: u32,
        frame: Vec<u8>,
    ) -> Result<ProgramSource, LiveError> {
        let mut object = load(flows - 1, Self::TASK)?;
        // Attached although nothing comes in: so that the interface may be sent from, which a virtual one
        // allows with a program only; and because a test run of a program that is not attached anywhere
        // patches the kernel's dispatcher of programs, twice, and waits for grace periods of 10 ms.
        attach(&mut object, "generate", Self::TASK, namespace, interface)?;
        // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let words = [0, frame.len() as u32, 0, index(namespace, interface)?, 0, 0];
        let mut context = [0; 24];
        for (place, word) in context.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(ProgramSource { object, context, frame, sent: 0 })
    }

    /// Sends this many frames, or fewer if a signal comes meanwhile, and returns how many. The calling thread must be in the
    /// interface's namespace.
    pub(super) fn send(&mut self, frames: u32) -> Result<u64, LiveError> {
        let options = TestRunOptions {
            data_in: Some(&self.frame),
            ctx_in: Some(&self.context),
            repeat: frames,
            attrs: TestRunAttrs::new().xdp_live_frames(Self::BATCH),
            ..TestRunOptions::default()
        };
        let before = self.sent;
        match program(&mut self.object, "generate").test_run(options) {
            Ok(_) => self.sent += u64::from(frames),
            Err(ProgramError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::Interrupted =>
            {
                self.sent = self.made()?;
            }
            Err(error) => return Err(LiveError::program(Self::TASK, error)),
        }
        Ok(self.sent - before)
    }

    /// Frames that the program has made since it was loaded.
    fn made(&self) -> Result<u64, LiveError> {
        let failed = |error| LiveError::program(Self::TASK, error);
        let map = self.object.map(".bss").expect("the object has variables");
        let variables: Array<_, u64> = map.try_into().map_err(failed)?;
        variables.get(&0, 0).map_err(failed)
    }
}

fn load(flow_mask: u32, task: &'static str) -> Result<Ebpf, LiveError> {
    EbpfLoader::new()
        .override_global("flow_mask", &flow_mask, true)
        .load(OBJECT)
        .map_err(|error| LiveError::program(task, error))
}

fn attach(
    object: &mut Ebpf,
    name: &str,
    task: &'static str,
    namespace: &Namespace,
    interface: &str,
) -> Result<(), LiveError> {
    let program = program(object, name);
    program.load().map_err(|error| LiveError::program(task, error))?;
    let attached = namespace.enter(|| program.attach(interface, XdpMode::Driver))?;
    attached.map_err(|error| LiveError::program(task, error))?;
    Ok(())
}

fn program<'a>(object: &'a mut Ebpf, name: &str) -> &'a mut Xdp {
    let program = object.program_mut(name).expect("the object has it");
    program.try_into().expect("all but one of its programs are for XDP")
}

/// The number of an interface.
fn index(namespace: &Namespace, interface: &str) -> Result<u32, LiveError> {
    // Sockets are in the namespace they were made in; /sys is in the one it was mounted in.
    let found = namespace.enter(|| {
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?;
        rustix::net::netdevice::name_to_index(socket, interface)
    })?;
    Ok(found.map_err(|error| TestbedError::file(interface, error.into()))?)
}

#[cfg(test)]
mod tests {
    //! Timed: processes, devices.

    use std::collections::HashSet;

    use super::*;
    use crate::live::generator::frame;
    use crate::live::wires::{END, Wires};

    /// The one's complement sum of RFC 1071 over 16-bit words, an odd last byte padded.
    fn sum(words: &[u8], start: u32) -> u32 {
        let mut sum = start;
        for pair in words.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn every_flow_comes_once_and_with_right_checksums() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not run: the program that makes flows is loaded by root only");
            return;
        }
        const FLOWS: u32 = 128;
        let wires = Wires::build().expect("namespaces");
        let mut source = ProgramSource::new(&wires.source, END, FLOWS, frame()).expect("a program");
        let mut flows = HashSet::new();
        for _ in 0..FLOWS {
            let mut made = [0; 60];
            let options = TestRunOptions {
                data_in: Some(&source.frame),
                data_out: Some(&mut made),
                ..TestRunOptions::default()
            };
            program(&mut source.object, "generate").test_run(options).expect("it runs");
            let ip = &made[14..];
            assert_eq!(sum(&ip[..20], 0), 0xffff, "the header's checksum in {made:02x?}");
            let pseudo_header = sum(&ip[12..20], 17 + (ip.len() as u32 - 20));
            assert_eq!(sum(&ip[20..], pseudo_header), 0xffff, "UDP's checksum in {made:02x?}");
            assert_eq!(ip[22..24], [0, 9], "to the discard service");
            flows.insert(ip[12..24].to_vec());
        }
        assert_eq!(flows.len(), FLOWS as usize, "flows");
        assert_eq!(source.made().unwrap(), u64::from(FLOWS), "what is left to say after a signal");
    }
}
