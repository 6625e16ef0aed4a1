//! Servers behind simulated devices, and what sends to them.

use crate::config::device::sim::{Driver, SimConfig};
use crate::config::{DeviceConfig, DeviceKind};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes devices whose server could not reply, or replies that would be answered in turn.
pub(super) fn check(devices: &[DeviceConfig], findings: &mut Findings) {
    let simulated = |(index, device): (usize, _)| match device {
        &DeviceConfig { kind: DeviceKind::Sim(ref sim), ref name, .. } => Some((index, name, sim)),
        _ => None,
    };
    let answering: Vec<(usize, &String, &SimConfig)> = devices
        .iter()
        .enumerate()
        .filter_map(simulated)
        .filter(|(.., sim)| sim.replies.is_some())
        .collect();
    for (index, name, sim) in &answering {
        let key = format!("device[{index}].replies");
        if sim.driver == Driver::Threaded {
            let message =
                format!("device `{name}` cannot place replies among what its thread delivers");
            let finding = Finding::mistake(&key, message)
                .at(findings.place(&format!("device[{index}].driver")), "")
                .at(findings.place(&key), "a server replies")
                .help("leave `driver` out: the pumped driver places replies when they are due");
            findings.push(finding);
        }
        if sim.rate.is_some() && !sim.traffic.clients_only {
            let message =
                format!("packets of servers come to device `{name}` twice: drawn, and as replies");
            let finding = Finding::mistake(&key, message)
                .at(findings.place(&format!("device[{index}].rate")), "clients and servers send")
                .at(findings.place(&key), "and a server replies")
                .help("write `clients_only = true` in `[device.traffic]`, or leave `rate` out");
            findings.push(finding);
        }
    }
    if let [(first, ..), (second, ..), ..] = answering[..] {
        let key = format!("device[{second}].replies");
        let message = "two devices have a server that replies, so replies would be answered in turn, without end";
        let finding = Finding::mistake(&key, message)
            .at(findings.place(&format!("device[{first}].replies")), "a server here")
            .at(findings.place(&key), "and one here")
            .help("have the server on one side, and its clients on the other");
        findings.push(finding);
    }
}
