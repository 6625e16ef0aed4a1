//! Which lane a packet belongs to: the hash over a packet set's fields, the bucket of the indirection
//! table it falls into, and the shard that bucket belongs to.

pub mod device_hash;
pub mod orientation;
pub mod packet_set;
pub mod port_class;
pub mod prefix;
pub mod steering;
pub mod table;
pub mod toeplitz;
pub mod translation;

pub use device_hash::{HashOptions, hash_packet};
pub use orientation::{Orientation, Oriented, Side};
pub use packet_set::{HashCapabilities, Infeasible, PacketSet, Whose};
pub use port_class::PortClasses;
pub use prefix::{Prefix, PrefixError, PrefixList};
pub use steering::{Steering, SteeringError, has_ports};
pub use table::{Fence, GenerationTable, IndirectionTable, RewriteError};
pub use toeplitz::{HashKey, INPUT_BYTES, Toeplitz};
pub use translation::Translation;
