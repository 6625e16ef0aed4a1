//! One backend that is checked, and what is thought of it.

use std::net::IpAddr;
use std::sync::Arc;

use rheostat_base::Time;

use super::CheckConfig;
use super::event::Failure;
use super::probe::{Outcome, Probe};

/// A backend with its check.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) service: usize,
    pub(super) backend: usize,
    pub(super) source: IpAddr,
    pub(super) address: IpAddr,
    /// Zero for a check without ports.
    pub(super) port: u16,
    pub(super) config: Arc<CheckConfig>,
    /// The check under way.
    pub(super) probe: Option<Probe>,
    /// When the next one begins.
    pub(super) due: Time,
    is_down: bool,
    /// Outcomes in a row that speak against what is thought.
    streak: u32,
}

impl Target {
    /// A backend that counts as up, whose first check begins at `due`.
    pub(super) fn new(
        (service, backend): (usize, usize),
        (source, address, port): (IpAddr, IpAddr, u16),
        config: Arc<CheckConfig>,
        due: Time,
    ) -> Target {
        let (probe, is_down, streak) = (None, false, 0);
        Target { service, backend, source, address, port, config, probe, due, is_down, streak }
    }

    /// Begins with what is known of the backend.
    pub(super) fn assume(&mut self, is_down: bool) {
        (self.is_down, self.streak) = (is_down, 0);
    }

    /// Thinks of the backend as was thought before.
    pub(super) fn think_as(&mut self, known: &Target) {
        (self.is_down, self.streak) = (known.is_down, known.streak);
    }

    /// When there is something to do for the backend next.
    pub(super) fn next_deadline(&self) -> Time {
        self.probe.as_ref().map_or(self.due, Probe::next_deadline)
    }

    /// Notes the outcome of a check. Returns what is thought of the backend now, if that has changed:
    /// why it is down, or that it is up.
    pub(super) fn note(&mut self, outcome: Outcome) -> Option<Option<Failure>> {
        if outcome.is_err() == self.is_down {
            self.streak = 0;
            return None;
        }
        self.streak += 1;
        let needed = if self.is_down { self.config.rise } else { self.config.fall };
        if self.streak < needed {
            return None;
        }
        self.streak = 0;
        self.is_down = outcome.is_err();
        Some(outcome.err())
    }
}
