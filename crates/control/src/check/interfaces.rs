//! Interfaces that several devices would open.

use crate::config::DeviceConfig;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes interfaces that two devices name: each packet would arrive on both, or on whichever opens it first.
/// Names are compared as text. That two names mean one interface is found when interfaces are looked up.
pub(super) fn check(devices: &[DeviceConfig], findings: &mut Findings) {
    for (index, device) in devices.iter().enumerate() {
        let Some(interface) = interface(device) else { continue };
        let mut earlier = devices[..index].iter();
        let Some(first) =
            earlier.position(|other| self::interface(other).as_ref() == Some(&interface))
        else {
            continue;
        };
        let [first_key, key] = [first, index].map(|index| format!("device[{index}].interface"));
        // Without a place in the file it came from the command line.
        let blamed = if findings.place(&key).is_some() { &key } else { "--device" };
        let message = format!(
            "devices `{}` and `{}` both have interface `{interface}`",
            devices[first].name, device.name
        );
        let finding = Finding::mistake(blamed, message)
            .at(findings.place(&first_key), "first here")
            .at(findings.place(&key), "and again here")
            .help("give each device an interface of its own; one device alone carries both sides with \
                   `inside = [prefixes]`");
        findings.push(finding);
    }
}

/// The interface of a device, where its name is known: the kernel replaces `%d` by a number.
fn interface(device: &DeviceConfig) -> Option<String> {
    device.facts().interface.filter(|name| !name.contains('%'))
}
