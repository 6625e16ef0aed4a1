//! Warnings about the interface of a device.

use rheostat_kernel::Interface;

/// The warning about an interface that is gone.
pub(super) fn gone(name: &str) -> String {
    format!("interface `{name}` is gone; the device neither gets nor sends")
}

/// The warning about an interface that is down, if it is.
pub(super) fn down(name: &str, interface: &Interface) -> Option<String> {
    let is_down = interface.is_up().is_ok_and(|up| !up);
    is_down.then(|| format!("interface `{name}` is down: `ip link set dev {name} up`"))
}
