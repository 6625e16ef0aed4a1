//! Devices that are the ports of a bridge.

use rheostat_nf::DeviceSet;

use crate::config::Sections;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes a bridge with too few ports, too many, or with addresses.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    if !config.bridges() {
        return;
    }
    let count = config.devices.len();
    if !(2..=DeviceSet::MOST).contains(&count) {
        let message = format!("a bridge has 2 to {} ports, and here are {count}", DeviceSet::MOST);
        let finding = Finding::mistake("device", message)
            .at(findings.place("chain.functions"), "the chain is a bridge")
            .help("have a `[[device]]` for each port");
        findings.push(finding);
    }
    let addressed = config.devices.iter().position(|device| !device.addresses.is_empty());
    if let Some(index) = addressed {
        let key = format!("device[{index}].address");
        let finding = Finding::mistake(&key, "ports of a bridge have no addresses")
            .at(findings.place(&key), "")
            .at(findings.place("chain.functions"), "the chain is a bridge")
            .help("remove it: the bridge forwards frames and takes none for itself");
        findings.push(finding);
    }
}
