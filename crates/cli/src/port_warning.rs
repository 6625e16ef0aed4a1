//! Warns when the external addresses of a NAT run short of ports.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use rheostat_nf::function::nat::{PortShare, PortUsage};
use rheostat_observe::Lines;

/// Ports in use of which there is a warning, in per cent.
const SCARCE: u64 = 80;
/// From one warning about an address and a protocol to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// Looks at the ports in use while a run goes on.
pub(crate) struct PortWarning {
    usage: PortUsage,
    /// When there was a warning last, by address and protocol.
    warned: Vec<Option<Instant>>,
}

impl PortWarning {
    pub(crate) fn new(usage: PortUsage) -> PortWarning {
        let warned = usage.shares().map(|_| None).collect();
        PortWarning { usage, warned }
    }

    /// The warnings that are due at `now`.
    fn due(&mut self, now: Instant) -> Vec<String> {
        let shares = self.usage.shares().zip(&mut self.warned);
        let due = shares.filter(|(share, warned)| {
            let recent = warned.is_some_and(|time| now.duration_since(time) < PAUSE);
            share.per_cent() >= SCARCE && !recent
        });
        due.map(|(share, warned)| {
            *warned = Some(now);
            text(&share)
        })
        .collect()
    }
}

fn text(share: &PortShare) -> String {
    let PortShare { address, protocol, in_use, ports } = share;
    let name = match protocol {
        6 => "TCP ports",
        17 => "UDP ports",
        1 => "ICMP identifiers",
        _ => "UDP-Lite ports",
    };
    let share = share.per_cent();
    format!(
        "nat: {in_use} of {ports} {name} of {address} are in use ({share} %): add addresses to `external`, or lower `quota`"
    )
}

impl Lines for PortWarning {
    fn write_new(&mut self, _: &mut dyn Write) -> io::Result<usize> {
        for warning in self.due(Instant::now()) {
            eprintln!("warning: {warning}");
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_address_and_what_to_do() {
        let share = PortShare {
            address: [203, 0, 113, 1].into(),
            protocol: 6,
            in_use: 52_000,
            ports: 64_512,
        };
        let text = text(&share);
        assert!(
            text.starts_with("nat: 52000 of 64512 TCP ports of 203.0.113.1 are in use (80 %): add"),
            "{text}"
        );
    }
}
