//! The programs of a tap interface.

use std::os::fd::{AsFd, BorrowedFd};

use aya::Ebpf;

use super::error::BpfError;
use super::fence::FenceMode;
use super::object::{Object, socket_filter};
use super::program_config::ProgramConfig;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/tap.o");
const WHAT: &str = "the programs for tap interfaces";

/// Two programs in the kernel until this is dropped. They let no packet through until they are opened.
pub(crate) struct TapPrograms {
    /// What opens and stops them.
    pub(crate) object: Object,
}

impl TapPrograms {
    /// Loads the programs.
    pub(crate) fn load(config: &ProgramConfig, fence: FenceMode) -> Result<TapPrograms, BpfError> {
        let object = Object::load(WHAT, OBJECT, &[], config, fence, |ebpf| {
            socket_filter(ebpf, "rheostat_tap").load()?;
            socket_filter(ebpf, "rheostat_gate").load()
        })?;
        object.close();
        Ok(TapPrograms { object })
    }

    /// The program that chooses the queue.
    pub(crate) fn steering(&mut self) -> BorrowedFd<'_> {
        loaded(&mut self.object.ebpf, "rheostat_tap")
    }

    /// The program that lets packets through, or not.
    pub(crate) fn gate(&mut self) -> BorrowedFd<'_> {
        loaded(&mut self.object.ebpf, "rheostat_gate")
    }
}

fn loaded<'a>(ebpf: &'a mut Ebpf, name: &str) -> BorrowedFd<'a> {
    socket_filter(ebpf, name).fd().expect("it was loaded").as_fd()
}
