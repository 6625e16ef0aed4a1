//! What hosts on the same machine leave undone because their interface seems to do it: checksums that
//! are not filled in, and frames of up to 64 KiB that are to be cut into packets of the usual size
//! (TCP segmentation offload, UDP segmentation offload). Done here in software, byte by byte as Linux
//! does it, so that what lanes see is what would be on a wire.
//!
//! The kernel describes such frames in a header of virtio (Virtual I/O Device 1.2, section 5.1.6).

mod offload;
mod plan;

pub use offload::{Offload, OffloadError, Transport, VNET_HEADER};
pub use plan::Segmentation;
