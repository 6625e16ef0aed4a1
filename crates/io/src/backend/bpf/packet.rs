//! The programs around packet sockets.

use std::os::fd::{AsFd, BorrowedFd};

use aya::Ebpf;
use aya::programs::tc::TcAttachType;
use aya::programs::{ProgramFd, SchedClassifier};

use super::error::BpfError;
use super::fence::FenceMode;
use super::object::{Object, socket_filter};
use super::program_config::ProgramConfig;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/packet.o");
const WHAT: &str = "the programs for packet sockets";

/// Three programs in the kernel until this is dropped. They let no packet through until they are opened.
pub(crate) struct PacketPrograms {
    /// What opens and stops them.
    pub(crate) object: Object,
}

impl PacketPrograms {
    /// Loads the programs.
    pub(crate) fn load(
        config: &ProgramConfig,
        fence: FenceMode,
    ) -> Result<PacketPrograms, BpfError> {
        let object = Object::load(WHAT, OBJECT, &[], config, fence, |ebpf| {
            socket_filter(ebpf, "rheostat_fanout").load()?;
            socket_filter(ebpf, "rheostat_takes").load()?;
            exclude(ebpf).load()
        })?;
        object.close();
        Ok(PacketPrograms { object })
    }

    /// The program that names the socket of a group.
    pub(crate) fn fanout(&mut self) -> BorrowedFd<'_> {
        let fanout = socket_filter(&mut self.object.ebpf, "rheostat_fanout").fd();
        ProgramFd::as_fd(fanout.expect("it was loaded"))
    }

    /// Keeps from a socket what is the kernel's, and everything while the programs are closed.
    pub(crate) fn guard(&mut self, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        let takes = socket_filter(&mut self.object.ebpf, "rheostat_takes");
        takes.attach(socket).map_err(|error| BpfError::load(WHAT, &error))
    }

    /// Keeps from the kernel's own stack what the sockets take.
    pub(crate) fn exclude(&mut self, name: &str, interface: u32) -> Result<(), BpfError> {
        let outcome = exclude(&mut self.object.ebpf).attach(name, TcAttachType::Ingress);
        outcome.map(drop).map_err(|error| BpfError::attach(&error, interface, "traffic control"))
    }
}

fn exclude(ebpf: &mut Ebpf) -> &mut SchedClassifier {
    let program = ebpf.program_mut("rheostat_exclude").expect("the object has this program");
    program.try_into().expect("it is a classifier")
}
