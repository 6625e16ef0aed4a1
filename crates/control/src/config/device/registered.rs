//! Devices of registered kinds.

use std::fmt;
use std::sync::Arc;

use rheostat_io::DeviceSetup;

/// A device of a registered kind with its settings. Two that are the same in words are equal.
#[derive(Clone, Debug)]
pub struct RegisteredDevice(pub Arc<dyn DeviceSetup>);

impl PartialEq for RegisteredDevice {
    fn eq(&self, other: &RegisteredDevice) -> bool {
        self.0.describe() == other.0.describe()
    }
}

impl fmt::Display for RegisteredDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}
