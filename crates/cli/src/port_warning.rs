//! Warns when the external addresses of a NAT run short of ports.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rheostat_nf::function::nat::{PortShare, PortUsage};

/// Ports in use of which there is a warning, in per cent.
const SCARCE: u64 = 80;
/// From one warning about an address and a protocol to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// How often the ports in use are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// A thread that looks at the ports in use while a run goes on. It ends when this is dropped.
pub(crate) struct PortWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PortWatch {
    /// Starts watching.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(usage: PortUsage) -> io::Result<PortWatch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let mut warning = PortWarning::new(usage);
        let watch = move || {
            // What it could not give up is found when the run makes sure of it.
            let _ = rheostat_base::privileges::give_up();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                for warning in warning.due(Instant::now()) {
                    eprintln!("warning: {warning}");
                }
            }
        };
        let thread = thread::Builder::new().name("rheo-ports".into()).spawn(watch)?;
        Ok(PortWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for PortWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The warnings about the ports of a NAT.
struct PortWarning {
    usage: PortUsage,
    /// When there was a warning last, by address and protocol.
    warned: Vec<Option<Instant>>,
}

impl PortWarning {
    fn new(usage: PortUsage) -> PortWarning {
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
