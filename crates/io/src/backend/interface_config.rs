//! The configuration that all devices at interfaces of this machine share.

/// Declares the configuration of a device at an interface: the fields that all have, and its own with their defaults.
macro_rules! interface_config {
    (
        $(#[$of_type:meta])* $type:ident
        $(#[$of_new:meta])* new
        { $($(#[$of_field:meta])* $field:ident: $kind:ty = $default:expr,)* }
    ) => {
        $(#[$of_type])*
        #[derive(Clone, Debug)]
        pub struct $type {
            /// The device's name in the configuration.
            pub name: String,
            /// The device's number.
            pub device: rheostat_base::DeviceId,
            /// The name of the interface.
            pub interface: String,
            /// The number of lanes. Each gets a queue, for any number of hardware queues.
            pub queues: u16,
            /// Where packets belong.
            pub steering: std::sync::Arc<rheostat_steer::Steering>,
            /// What their hash covers.
            pub hashing: rheostat_steer::HashOptions,
            /// Which packets are taken; the others are left to the kernel.
            pub filter: rheostat_capture::filter::Filter,
            /// How exact a rewrite of the indirection table is.
            pub fence: crate::backend::bpf::FenceMode,
            /// Where the indirection table leads each bucket at first; in turn around the queues where nothing is
            /// given.
            pub placement: Option<Vec<rheostat_base::QueueId>>,
            /// Counts arrivals. Devices that follow each other on one interface share it, so that the order of their
            /// packets is known.
            pub stamps: std::sync::Arc<std::sync::atomic::AtomicU32>,
            $($(#[$of_field])* pub $field: $kind,)*
        }

        impl $type {
            $(#[$of_new])*
            pub fn new(
                name: impl Into<String>,
                interface: impl Into<String>,
                queues: u16,
                steering: std::sync::Arc<rheostat_steer::Steering>,
            ) -> $type {
                $type {
                    name: name.into(),
                    device: rheostat_base::DeviceId(0),
                    interface: interface.into(),
                    queues,
                    steering,
                    hashing: Default::default(),
                    filter: Default::default(),
                    fence: Default::default(),
                    placement: None,
                    stamps: Default::default(),
                    $($field: $default,)*
                }
            }

            /// What the programs in the kernel are made for.
            pub(super) fn programs(&self) -> crate::backend::bpf::ProgramConfig {
                crate::backend::bpf::ProgramConfig {
                    steering: self.steering.clone(),
                    device: self.device,
                    hashing: self.hashing,
                    queues: self.queues,
                    filter: self.filter.clone(),
                }
            }
        }
    };
}

pub(super) use interface_config;
