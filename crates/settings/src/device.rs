//! Devices, as the settings of others refer to them: by name and by side.

use rheostat_base::DeviceId;
use rheostat_steer::{Orientation, Side};

use crate::findings::Findings;
use crate::reader::Value;
use crate::reader::convert::text;
use crate::suggestion::{enumerate, nearest};

/// A device of a configuration, by what settings refer to. Its number is its position among all devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Which packets come from inside.
    pub orientation: Orientation,
}

/// A device with a name.
pub trait Named {
    /// The name that other settings refer to it by.
    fn name(&self) -> &str;
}

impl Named for Device {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for String {
    fn name(&self) -> &str {
        self
    }
}

/// The sides and their names.
pub(crate) const SIDES: [(&str, Side); 2] = [("inside", Side::Inside), ("outside", Side::Outside)];

/// A conversion to one of `devices` by its name.
pub(crate) fn named<D: Named>(
    devices: &[D],
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<DeviceId> + use<'_, D> {
    move |value, findings| {
        let name = text(value, findings)?;
        if let Some(index) = devices.iter().position(|device| device.name() == name) {
            return Some(DeviceId(index as u8));
        }
        // A device that could not be read may well have this name.
        if findings.clean("device") {
            let names = || devices.iter().map(Named::name);
            let label = nearest(name, names())
                .map_or_else(String::new, |known| format!("did you mean `{known}`?"));
            let finding = value.mistake_labelled(format!("no device is named `{name}`"), label);
            findings.push(finding.help(format!("the devices are {}", enumerate(names()))));
        }
        None
    }
}
