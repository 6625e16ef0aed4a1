//! Packets: the pool of buffers they lie in, views of their headers without copies, the keys of the
//! flows they belong to, and checksums.

pub mod burst;
pub mod headers;
pub mod key;
pub mod mbuf;

pub use burst::{BURST, Burst};
pub use headers::{Fragment, Headers, Network};
pub use key::{Family, FlowKey};
pub use mbuf::{AllocError, HashKind, LinkType, Mbuf, Mempool, MempoolConfig, Meta, PoolCache};
