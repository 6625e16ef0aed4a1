//! Which lane a packet belongs to: the hash over a packet set's fields, the bucket of the indirection
//! table it falls into, and the shard that bucket belongs to. And which lane a shard belongs to: the
//! policies that move shards with the load, and the baselines that choose a lane for each packet.

pub mod class_rules;
pub mod device_hash;
pub mod dispatch;
pub mod feasibility;
pub mod orientation;
pub mod packet_set;
pub mod policy;
pub mod port_class;
pub mod prefix;
pub mod steering;
pub mod table;
pub mod toeplitz;
pub mod translation;

pub use class_rules::{ClassBurst, ClassRule, ClassRules, ClassSubject, MAX_CLASSES, RulePlaces};
pub use device_hash::{HashOptions, hash_packet};
pub use dispatch::Dispatch;
pub use feasibility::{Alternative, HashCapabilities, Infeasible};
pub use orientation::{Orientation, Oriented, Side};
pub use packet_set::{Fields, PacketSet, Protocols, Whose};
pub use policy::Policy;
pub use port_class::{KeyEnd, PortClasses, fewest_ports, ports_are_even};
pub use prefix::{Prefix, PrefixError, PrefixList};
pub use steering::{Steering, SteeringError, has_ports};
pub use table::{Fence, GenerationTable, IndirectionTable, RewriteError};
pub use toeplitz::{HashKey, INPUT_BYTES, Toeplitz};
pub use translation::Translation;
