//! Warns when the external addresses of a NAT run short of ports.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rheostat_observe::{PortBoard, PortLine};

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
    pub(crate) fn start(board: Arc<PortBoard>) -> io::Result<PortWatch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (mut warnings, start) = (PortWarnings::default(), Instant::now());
        let watch = move || {
            // What it could not give up is found when the run makes sure of it.
            let _ = rheostat_kernel::privileges::give_up();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                for warning in warnings.due(&board.lines(SystemTime::now()), start.elapsed()) {
                    tracing::warn!(target: "ports", "{warning}");
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

/// When there was a warning last, since the start, by address and protocol.
#[derive(Default)]
struct PortWarnings(HashMap<(String, String), Duration>);

impl PortWarnings {
    /// The warnings that are due at `now`, since the start.
    fn due(&mut self, lines: &[PortLine], now: Duration) -> Vec<String> {
        let mut due = Vec::new();
        for line in lines.iter().filter(|line| line.is_scarce()) {
            let whose = (line.address.clone(), line.protocol.clone());
            let is_recent = self.0.get(&whose).is_some_and(|time| now - *time < PAUSE);
            if !is_recent {
                self.0.insert(whose, now);
                due.push(format!("nat: {line}: {}", line.advice()));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(in_use: u64, scarce_since: Option<f64>) -> PortLine {
        PortLine {
            address: "203.0.113.1".into(),
            protocol: "tcp".into(),
            remote: None,
            in_use,
            ports: 64_512,
            scarce_since,
            scarce_seconds: scarce_since,
        }
    }

    #[test]
    fn a_warning_names_the_address_and_what_to_do_once_a_minute() {
        let mut warnings = PortWarnings::default();
        let mut at = |seconds, line| warnings.due(&[line], Duration::from_secs(seconds));
        assert_eq!(at(0, line(51_000, None)), [""; 0]);
        let text = "nat: 203.0.113.1 tcp: 52000 of 64512 ports in use (80 %): add addresses to `external`, or \
                    lower `quota`";
        assert_eq!(at(1, line(52_000, Some(1.0))), [text]);
        assert_eq!(at(60, line(52_000, Some(1.0))), [""; 0]);
        assert_eq!(at(61, line(52_000, Some(1.0))), [text]);
    }
}
