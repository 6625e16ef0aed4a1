//! Identifiers: small integers that cannot be mistaken for one another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The identifier as an index into an array with one element per identifier.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// A device of the run, numbered in the order of the configuration.
    DeviceId(u8), "device "
);
id!(
    /// A receive queue of one device. Lane `n` polls queue `n` of every device.
    QueueId(u16), "queue "
);
id!(
    /// A lane: one receive queue of each device with the shards it owns.
    LaneId(u16), "lane "
);
id!(
    /// A worker: a thread that runs lanes.
    WorkerId(u16), "worker "
);
id!(
    /// A shard: the unit of state with one owner. Bucket `b` belongs to shard `b mod S`.
    ShardId(u16), "shard "
);
id!(
    /// A processor as the operating system numbers it.
    CoreId(u16), "core "
);

impl DeviceId {
    /// The number of no device: a run has fewer.
    pub const NONE: DeviceId = DeviceId(u8::MAX);
}
