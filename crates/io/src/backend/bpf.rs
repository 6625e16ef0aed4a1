//! Programs in the kernel that place packets on lanes: they hash each packet as
//! [`rheostat_steer::hash_packet`] does, count it in its bucket, and look the bucket's lane up in an
//! indirection table that this process has mapped and rewrites with plain stores.
//!
//! The programs are C, in `crates/io/bpf`, and come compiled, so that no compiler is needed for them.
//! They need Linux 5.18.

mod counters;
mod error;
mod fence;
mod object;
mod packet;
mod program_config;
mod settings;
mod shared_array;
mod table;
mod tap;
mod xdp;

pub use counters::{BucketLoad, ProgramCounters};
pub use error::BpfError;
pub use fence::FenceMode;
pub(crate) use packet::PacketPrograms;
pub use program_config::ProgramConfig;
pub(crate) use tap::TapPrograms;
pub use xdp::{AttachMode, HARDWARE_QUEUES, METADATA, PacketHash, XdpProgram};
