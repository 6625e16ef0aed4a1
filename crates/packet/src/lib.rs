//! Packets: the pool of buffers they lie in, views of their headers without copies, the keys of the
//! flows they belong to, and checksums.

pub mod build;
pub mod burst;
#[cfg(test)]
mod cases;
pub mod checksum;
pub mod headers;
pub mod key;
pub mod malformed;
pub mod mbuf;
pub mod tuple;
pub mod usual;
pub mod wire;

pub use burst::{BURST, Burst};
pub use headers::{Fragment, Headers, Network};
pub use key::{Family, FlowKey, KeyMask, KeyParts};
pub use malformed::Malformed;
pub use mbuf::{AllocError, HashKind, LinkType, Loans, Mbuf, Mempool, MempoolConfig, PoolCache};
pub use tuple::Tuple;
