//! How a tap interface is made.

use crate::backend::interface_config::interface_config;

interface_config! {
    /// How a tap interface is made. An interface that does not exist is made, and vanishes with the device; `%d` in its name is a
    /// number that the kernel chooses. The kernel drops packets that are not taken: no other program receives packets of the
    /// interface.
    TapConfig
    /// A device that takes every packet.
    new {}
}
